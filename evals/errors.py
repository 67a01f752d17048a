"""What can go wrong in `evals`, as one tree.

EvalsError
├── PolicyError     a policy file cannot be used: names file, key and what was wanted
├── EvidenceError   the pairs' table is not one the gate can read
├── AdviceError     the router's rules cannot be written
├── BundleError     a bundle cannot be written, or is not one
├── EvaluatorError  an evaluator that is asked for is not there, or is none
├── ImportFileError a file is not of the format that it should be: names file, line and key
└── SourceError     the collector holds nothing to judge under that name
"""


class EvalsError(Exception):
    """An input that cannot be used; the message stands on one line and says what to do."""


class PolicyError(EvalsError):
    """A policy that cannot be used."""


class EvidenceError(EvalsError):
    """A table of pairs that cannot be read."""


class SourceError(EvalsError):
    """Stored data that cannot be judged."""


class BundleError(EvalsError):
    """A verdict's bundle that cannot be used."""


class AdviceError(EvalsError):
    """Advice that cannot be given or written."""


class EvaluatorError(EvalsError):
    """An evaluator that cannot be used."""


class ImportFileError(EvalsError):
    """A file that cannot be made a workload."""
