"""The collector: owns the wire contract and every stored byte."""
