"""Files of exported functions that are taken apart, edited and put together again."""

import pytest

import weft
from weft import jit, load_function, save_function
from weft.export.container import read_container, write_container
from weft.tensor import Tensor

REFUSED = "the header does not describe a function"


class File:
    """The header, the text and the contents of a function, to be edited and written again."""

    def __init__(self, path, function, *args, donate=()):
        self.path = path
        save_function(jit(function, donate=donate), path, *args)
        self.header, (text, *self.contents) = read_container(path)
        self.text = text.decode()

    def replace(self, old, new, count=-1):
        assert old in self.text
        self.text = self.text.replace(old, new, count)

    def write(self):
        write_container(self.path, self.header, [self.text.encode(), *self.contents])

    def refused(self, words):
        self.write()
        with pytest.raises(weft.FileFormatError, match=REFUSED) as error:
            load_function(self.path)
        assert words in str(error.value)

    def loaded(self):
        self.write()
        return load_function(self.path)


def four():
    return Tensor([1.0, 2.0, 3.0, 4.0]).realize()
