"""What networks are made of: activations, convolutions, pools, losses."""
