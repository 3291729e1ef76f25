"""An encoder-decoder transformer that learns to write numbers backwards.

Training is saved and goes on where it was. `python translate.py --checkpoint run.pt`
"""

import argparse
import math
import os

import weft as torch
import weft.nn as nn
from weft.optim.lr_scheduler import LambdaLR
from weft.utils.data import DataLoader, Dataset

PAD, BOS, EOS = 0, 1, 2
SYMBOLS = 13  # three marks and ten digits
DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Reversed(Dataset):
    """Rows of digits of several lengths, and the same digits backwards."""

    def __init__(self, count, longest, seed=0):
        generator = torch.Generator().manual_seed(seed)
        lengths = torch.randint(2, longest + 1, (count,), generator=generator)
        self.rows = [
            torch.randint(3, SYMBOLS, (n,), generator=generator) for n in lengths.tolist()
        ]

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        row = self.rows[index]
        mark = torch.tensor([BOS]), torch.tensor([EOS])
        return row, torch.cat([mark[0], row.flip(0), mark[1]])


def collate(batch):
    sources, targets = zip(*batch, strict=True)
    pad = nn.utils.rnn.pad_sequence
    return (
        pad(sources, batch_first=True, padding_value=PAD),
        pad(targets, batch_first=True, padding_value=PAD),
    )


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, dropout=0.1, max_len=64):
        super().__init__()
        self.dropout = nn.Dropout(p=dropout)
        position = torch.arange(max_len).unsqueeze(1)
        div_term = torch.exp(torch.arange(0, d_model, 2) * (-math.log(10000.0) / d_model))
        pe = torch.zeros(1, max_len, d_model)
        pe[0, :, 0::2] = torch.sin(position * div_term)
        pe[0, :, 1::2] = torch.cos(position * div_term)
        self.register_buffer("pe", pe)

    def forward(self, x):
        x = x + self.pe[:, : x.size(1)]
        return self.dropout(x)


class Translator(nn.Module):
    def __init__(self, d_model=64, heads=4, layers=2, dropout=0.1):
        super().__init__()
        self.d_model = d_model
        self.source = nn.Embedding(SYMBOLS, d_model, padding_idx=PAD)
        self.target = nn.Embedding(SYMBOLS, d_model, padding_idx=PAD)
        self.positions = PositionalEncoding(d_model, dropout)
        self.transformer = nn.Transformer(
            d_model=d_model,
            nhead=heads,
            num_encoder_layers=layers,
            num_decoder_layers=layers,
            dim_feedforward=d_model * 4,
            dropout=dropout,
            batch_first=True,
        )
        self.generator = nn.Linear(d_model, SYMBOLS)
        self._init_weights()

    def _init_weights(self):
        for p in self.parameters():
            if p.dim() > 1:
                nn.init.xavier_uniform_(p)

    def encode(self, src):
        mask = src == PAD
        x = self.positions(self.source(src) * math.sqrt(self.d_model))
        return self.transformer.encoder(x, src_key_padding_mask=mask)

    def decode(self, tgt, memory, src):
        causal = nn.Transformer.generate_square_subsequent_mask(tgt.size(1), device=tgt.device)
        x = self.positions(self.target(tgt) * math.sqrt(self.d_model))
        h = self.transformer.decoder(
            x, memory, tgt_mask=causal, memory_key_padding_mask=(src == PAD)
        )
        return self.generator(h)

    def forward(self, src, tgt):
        return self.decode(tgt, self.encode(src), src)


@torch.no_grad()
def translate(model, src, max_len):
    """The most likely symbol at each position, until every row has ended."""
    model.eval()
    memory = model.encode(src)
    ys = torch.full((src.size(0), 1), BOS, dtype=torch.long, device=src.device)
    ended = torch.zeros(src.size(0), dtype=torch.bool, device=src.device)
    for _ in range(max_len):
        logits = model.decode(ys, memory, src)
        word = logits[:, -1].argmax(dim=-1).masked_fill(ended, PAD)
        ys = torch.cat([ys, word.unsqueeze(1)], dim=1)
        ended |= word == EOS
        if ended.all():
            break
    return ys[:, 1:]


def accuracy(model, loader):
    right, total = 0, 0
    for src, tgt in loader:
        out = translate(model, src.to(DEVICE), tgt.size(1) - 1).cpu()
        expected = tgt[:, 1 : 1 + out.size(1)]
        right += (out == expected).all(dim=1).sum().item()
        total += src.size(0)
    return right / total


def noam(d_model, warmup):
    return lambda step: d_model**-0.5 * min((step + 1) ** -0.5, (step + 1) * warmup**-1.5)


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--rows", type=int, default=4000)
    parser.add_argument("--longest", type=int, default=8)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--dropout", type=float, default=0.1)
    parser.add_argument("--checkpoint", default="translate.pt")
    parser.add_argument("--weights", help="a file of weights to begin with")
    args = parser.parse_args(argv)

    torch.manual_seed(1)
    train = DataLoader(
        Reversed(args.rows, args.longest), args.batch, shuffle=True, collate_fn=collate
    )
    test = DataLoader(Reversed(200, args.longest, seed=1), 100, collate_fn=collate)
    model = Translator(args.width, layers=args.layers, dropout=args.dropout).to(DEVICE)
    if args.weights:
        model.load_state_dict(torch.load(args.weights))
    criterion = nn.CrossEntropyLoss(ignore_index=PAD, label_smoothing=0.1)
    optimizer = torch.optim.Adam(model.parameters(), lr=1.0, betas=(0.9, 0.98), eps=1e-9)
    scheduler = LambdaLR(optimizer, lr_lambda=noam(args.width, warmup=100))

    start, losses = 0, []
    if os.path.exists(args.checkpoint):
        checkpoint = torch.load(args.checkpoint, map_location=DEVICE, weights_only=True)
        model.load_state_dict(checkpoint["model"])
        optimizer.load_state_dict(checkpoint["optimizer"])
        scheduler.load_state_dict(checkpoint["scheduler"])
        torch.set_rng_state(checkpoint["rng"])
        start, losses = checkpoint["epoch"], checkpoint["losses"]
        print(f"resumed after epoch {start}")

    for epoch in range(start, args.epochs):
        model.train()
        for src, tgt in train:
            src, tgt = src.to(DEVICE), tgt.to(DEVICE)
            logits = model(src, tgt[:, :-1])
            loss = criterion(logits.reshape(-1, SYMBOLS), tgt[:, 1:].reshape(-1))
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
            optimizer.step()
            scheduler.step()
            losses.append(loss.item())
        torch.save(
            {
                "model": model.state_dict(),
                "optimizer": optimizer.state_dict(),
                "scheduler": scheduler.state_dict(),
                "rng": torch.get_rng_state(),
                "epoch": epoch + 1,
                "losses": losses,
            },
            args.checkpoint,
        )
        print(f"epoch {epoch + 1}: loss {losses[-1]:.4f}, {accuracy(model, test):.1%} right")
    return losses, model


if __name__ == "__main__":
    main()
