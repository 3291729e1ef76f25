"""The page behind each error code, as data.

`weft explain CODE` and the error page of the docs are made from `ERROR_TABLE`. A row says what the
error means in general and how one usually gets out of it; the message itself has the particulars.
"""

from __future__ import annotations

from weft.support import errors
from weft.support.message import nearest


class ErrorRow:
    """One class of error and its explanation, a paragraph of plain text."""

    __slots__ = ("code", "error", "explanation", "name")

    def __init__(
        self, error: type[errors.UsageError] | type[errors.InternalError], explanation: str
    ) -> None:
        self.error = error
        self.name = error.__name__
        self.code = error.code
        self.explanation = " ".join(explanation.split())

    def __repr__(self) -> str:
        return f"<ErrorRow {self.code} {self.name}>"


ERROR_TABLE = (
    ErrorRow(
        errors.UsageError,
        """The root of all errors that you can put right yourself. Weft raises one of its
        subclasses; catch UsageError to handle every one of them, or the builtin error that the
        subclass also derives from.""",
    ),
    ErrorRow(
        errors.ShapeError,
        """The shapes of the operands do not fit the operation. Elementwise operations need shapes
        that broadcast: counted from the last axis, two sizes are equal or one of them is 1. A
        matrix product needs the last axis of the left operand to equal the last but one of the
        right. A reshape keeps the number of elements. The facts show each shape and the axis at
        fault.""",
    ),
    ErrorRow(
        errors.DTypeError,
        """An operation does not exist for a dtype, or would lose information without being asked
        to. Convert explicitly with cast. Python numbers are weak: they take the dtype of the
        tensor they meet, unless they are of a wider kind (a float meeting an integer tensor).""",
    ),
    ErrorRow(
        errors.AxisError,
        """An axis number lies outside the tensor, or the same axis is named twice. A tensor with n
        axes has the axes 0 to n - 1; negative numbers count from the end, so -1 is the last axis
        and -n the first.""",
    ),
    ErrorRow(
        errors.IndexOutOfRange,
        """An index selects an element that does not exist. An axis of size n has the elements 0 to
        n - 1, and -n to -1 counted from the end. A slice is cut to the axis and never raises this
        error.""",
    ),
    ErrorRow(
        errors.ArgumentError,
        """An argument has the right type, but a value that means nothing here, such as a negative
        size or a setting outside its choices. The message says which values are accepted.""",
    ),
    ErrorRow(
        errors.ArgumentTypeError,
        """An argument has a type that the function does not take. The message names the argument,
        the type it got and the types it takes.""",
    ),
    ErrorRow(
        errors.UnknownName,
        """A setting, dtype, device or other thing that is chosen by name does not exist. The
        message gives the nearest known name where one is near.""",
    ),
    ErrorRow(
        errors.UnknownAttribute,
        """An object has no attribute of this name. The message gives the nearest known name where
        one is near. It is an AttributeError, so hasattr and getattr with a default work.""",
    ),
    ErrorRow(
        errors.OptRefused,
        """An opt of a kernel's schedule is not legal there: it would change what the kernel means,
        or it names a range that the kernel does not have. The message gives the reason.""",
    ),
    ErrorRow(
        errors.DeviceError,
        """A device is not present, its driver cannot be loaded, or it refused a request. Code for
        a target can be made without the device; only running it needs the device.""",
    ),
    ErrorRow(
        errors.OutOfMemory,
        """A device has too little free memory for a buffer. The message says how much was asked
        for, how much is in use and by what. A smaller batch, a smaller dtype, or letting go of
        tensors that are no longer needed helps.""",
    ),
    ErrorRow(
        errors.NotSupported,
        """The request makes sense, but Weft cannot do it, or not on this target. The message says
        what is supported instead.""",
    ),
    ErrorRow(
        errors.MissingFile,
        """There is no file at a path that is read, or no folder at a path where a file is to be
        written. It is also a FileNotFoundError. Relative paths start in the folder that the
        program was started in; the message has the path as it was given.""",
    ),
    ErrorRow(
        errors.NotFinite,
        """CHECK=nan was on, and a computation made a NaN or an infinity of values that had none.
        The message names the operation, its element and the values it had there, and your line.
        Usual causes: a logarithm or division of zero, exp of a large number, a square root of a
        negative one, a learning rate that is too large. Infinities that a program writes itself,
        as into a mask, are left alone.""",
    ),
    ErrorRow(
        errors.Busy,
        """An engine of a language model answers as many requests as it may, and as many as may
        wait are waiting. A later try finds room. `Engine(waiting=...)` lets more wait, and
        `streams=...` answers more at once.""",
    ),
    ErrorRow(
        errors.LinAlgError,
        """A function of weft.linalg was called with check_errors=True, and a matrix has no inverse
        or no such factors: its info is not 0. Without check_errors nothing is looked at, because
        that would compute it: the result then has infinities or NaN, and info says which matrices
        of a batch are at fault. It is named as in torch.linalg and numpy.linalg.""",
    ),
    ErrorRow(
        errors.GradcheckError,
        """weft.autograd.gradcheck compared the gradient of a function with differences of its
        values, and they are not the same. Usual causes: a gradient written by hand that is wrong,
        a point where the function has a kink, float32 inputs, whose differences are rounding, or
        random numbers in the function.""",
    ),
    ErrorRow(
        errors.FileFormatError,
        """A file is damaged, cut short, or of another format than the one it was read as. The
        message says what was expected and at which byte. An incomplete download is the usual
        cause.""",
    ),
    ErrorRow(
        errors.TextError,
        """The text form of a program cannot be parsed. The message shows the line of the text and
        what was expected there. Text that Weft printed itself always parses.""",
    ),
    ErrorRow(
        errors.InternalError,
        """Weft broke one of its own rules. It is not your mistake. The message names the pass and
        the last rule that ran, and the report file it names has the program at that point; please
        attach it to a bug report. Running with NOOPT=1 shows whether an optimization is at
        fault.""",
    ),
)


def explain(word: str) -> ErrorRow:
    """Return the row of an error, found by its code or its class name in any case.

    >>> explain("w101").name
    'ShapeError'
    """
    rows = {key: row for row in ERROR_TABLE for key in (row.code, row.name)}
    by_folded = {key.casefold(): row for key, row in rows.items()}
    if (found := by_folded.get(word.casefold())) is not None:
        return found
    near = nearest(word, rows)
    raise errors.UnknownName(
        f"explain: no error is called {word!r}",
        rule="errors are known by a code such as W101 or a name such as ShapeError",
        fix=f"the nearest one is {near}" if near else "",
    )
