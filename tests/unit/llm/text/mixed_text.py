"""Text in many languages, with code, numbers and spaces: what tokenizers are compared on."""

import random

SENTENCES = (
    "The quick brown fox isn't over the lazy dog's 12345 bones; it'll JUMP, they've said!",
    "Größere Übergänge müssen geprüft werden – „ja“, sagte er.",
    "L'été dernier, nous avons mangé des crêpes à Saint-Malo… c'était délicieux.",
    "Съешь же ещё этих мягких французских булок, да выпей чаю.",
    "我能吞下玻璃而不伤身体。今天是2024年3月15日，天气很好！",
    "私はガラスを食べられます。それは私を傷つけません。カタカナとひらがな。",
    "나는 유리를 먹을 수 있어요. 그래도 아프지 않아요 100%.",
    "أنا قادر على أكل الزجاج و هذا لا يؤلمني ١٢٣.",
    "मैं काँच खा सकता हूँ और मुझे उससे कोई चोट नहीं पहुंचती।",
    "Ξεσκεπάζω την ψυχοφθόρα βδελυγμία. Είναι 7,5 €;",
    "ฉันกินกระจกได้ แต่มันไม่ทำให้ฉันเจ็บ",
    "def f(x):\n\treturn {k: v**2 for k, v in x.items() if k != 'a_b'}  # note\r\n",
    "for (int i = 0; i < 10; ++i) { s += a[i] << 2; }\n\n\n    indented\t\ttabs   ",
    "emoji 😀👍🏽👨‍👩‍👧 flags 🇫🇷 and combining e\u0301 a\u030a; zero\u200bwidth",
    "https://example.org/path?q=1&r=%20 <b>bold</b> [UNUSED] user@example.org",
    "1234567890 3.14159 0x1F 1e-9 ½ ² Ⅻ ①",
    "\u00a0non-breaking\u3000ideographic\u2028line \u2029paragraph",
)


def mixed_text(size: int = 40_000, seed: int = 0) -> list[str]:
    """Some paragraphs: the sentences, then words of them in any order with any spaces."""
    source = random.Random(seed)
    words = [word for sentence in SENTENCES for word in sentence.split(" ")]
    paragraphs, count = list(SENTENCES), 0
    while count < size:
        picked = [source.choice(words) for _ in range(source.randint(1, 40))]
        text = picked[0]
        for word in picked[1:]:
            text += source.choice((" ", " ", " ", "  ", "\n", "", "\t", " \n ", "'")) + word
        paragraphs.append(text)
        count += len(text)
    return paragraphs
