"""The exceptions of `evals`, as one tree.

EvalsError
├── PolicyError     a policy file cannot be used: names file, key and the expected value
├── EvidenceError   the gate cannot read the table of pairs
├── AdviceError     the router's rules cannot be written
├── BundleError     a bundle cannot be written or read
├── WriteError      a verdict cannot be written to a file
├── CommentError    a verdict cannot be put under a pull or merge request
├── RescoringError  the model for rescoring cannot be loaded
├── EvaluatorError  an evaluator does not exist or cannot be used
├── ImportFileError a file does not have the expected format: names file, line and key
└── SourceError     the collector has nothing to judge under that name
"""


class EvalsError(Exception):
    """An input that cannot be used; the message has one line and says what to do."""


class PolicyError(EvalsError):
    """A policy that cannot be used."""

    def __init__(self, message: str, *, key: str = "", line: int | None = None) -> None:
        super().__init__(message)
        self.key = key
        """Path of the key at fault, such as `prove[0].max`; empty: none, or the whole file."""
        self.line = line
        """Number of the line at fault, if the reader of YAML named it."""


class EvidenceError(EvalsError):
    """A table of pairs that cannot be read."""


class SourceError(EvalsError):
    """Stored data that cannot be judged."""


class BundleError(EvalsError):
    """A verdict's bundle that cannot be used."""


class AdviceError(EvalsError):
    """Advice that cannot be given or written."""


class RescoringError(EvalsError):
    """A model that cannot rescore answers."""


class WriteError(EvalsError):
    """A verdict that cannot be written to a file."""


class CommentError(EvalsError):
    """A comment that cannot be added or updated."""


class EvaluatorError(EvalsError):
    """An evaluator that cannot be used."""


class ImportFileError(EvalsError):
    """A file that cannot be converted to a workload."""
