"""Makes the standard library's part of the file: library.h and library.wasm.

Usage: python library.py <source's Lib> <_sysconfigdata> <output directory>

library.wasm exports library.read(to, from, n), which copies bytes of a passive data segment to the memory that it imports.
The library is bytecode without sources: x.pyc in the place of x.py.
"""

import importlib.util
import os
import re
import sys
from importlib._bootstrap_external import _code_to_hash_pyc

PATH = "/usr/local/lib/python3.13"

# What cannot run in a sandbox, is for developers at a terminal, or tests Python itself.
OMITTED = re.compile(
    r"(.*/)?(__pycache__|test|tests|idlelib|tkinter|turtledemo|ensurepip|venv|lib2to3|pydoc_data|curses|_pyrepl|"
    r"multiprocessing|site-packages|ctypes|dbm/(gnu|ndbm)\.py|turtle\.py|antigravity\.py|ssl\.py|_ios_support\.py|"
    r"_android_support\.py|_apple_support\.py|_aix_support\.py|_osx_support\.py)(/.*)?"
)


def files(lib):
    for directory, below, names in os.walk(lib):
        for name in names:
            path = os.path.relpath(os.path.join(directory, name), lib)
            if not OMITTED.fullmatch(path):
                yield path


def compiled(path, source):
    code = compile(source, f"{PATH}/{path}", "exec", dont_inherit=True, optimize=0)
    return bytes(_code_to_hash_pyc(code, importlib.util.source_hash(source), False))


def leb(n):
    out = b""
    while n >= 0x80:
        out, n = out + bytes([n & 0x7F | 0x80]), n >> 7
    return out + bytes([n])


def section(number, *items):
    content = leb(len(items)) + b"".join(items)
    return bytes([number]) + leb(len(content)) + content


def text(s):
    return leb(len(s)) + s.encode()


def module(data):
    """(module (type (func (param i32 i32 i32))) (import "python" "memory" (memory 0)) (func (export "library.read") …) (data …))"""
    body = b"\x00\x20\x00\x20\x01\x20\x02\xfc\x08\x00\x00\x0b"  # local.get 0, 1, 2; memory.init 0; end
    return b"".join([
        b"\0asm\1\0\0\0",
        section(1, b"\x60\x03\x7f\x7f\x7f\x00"),
        section(2, text("python") + text("memory") + b"\x02\x00\x00"),
        section(3, b"\x00"),
        section(7, text("library.read") + b"\x00\x00"),  # not a name that a handler can have
        b"\x0c\x01\x01",  # one data segment
        section(10, leb(len(body)) + body),
        section(11, b"\x01" + leb(len(data)) + data),  # passive
    ])


def main(lib, sysconfigdata, output):
    content = {}
    for path in sorted(files(lib)):
        with open(os.path.join(lib, path), "rb") as f:
            content[path] = f.read()
    with open(sysconfigdata, "rb") as f:
        content[os.path.basename(sysconfigdata)] = f.read()
    tree = {"": None, "lib-dynload": None}  # Python looks for this directory
    for path, source in content.items():
        if path.endswith(".py"):
            tree[path + "c"] = compiled(path, source)
        else:
            tree[path] = source
        while path := os.path.dirname(path):
            tree[path] = None
    order = sorted(tree, key=os.fsencode)
    data, lines = bytearray(), []
    for path in order:
        one = tree[path]
        above = order.index(os.path.dirname(path)) if path else -1
        lines.append(f'  {{"{path}", {len(data)}, {-1 if one is None else len(one)}, {above}}},\n')
        data += one or b""
    with open(os.path.join(output, "library.h"), "w") as f:
        f.write(f'#define LIBRARY_PATH "{PATH}"\n#define LIBRARY_TIME {os.environ["SOURCE_DATE_EPOCH"]}\n')
        f.write(f"enum {{ ENTRIES = {len(order)} }};\n")
        f.write("// A size of -1 is a directory. directory is the index of the one that the entry is in.\n")
        f.write("static const struct entry { const char *path; uint32_t offset; int32_t size, directory; } entries[ENTRIES] = {\n")
        f.writelines(lines)
        f.write("};\n")
    with open(os.path.join(output, "library.wasm"), "wb") as f:
        f.write(module(bytes(data)))
    print(f"{len(order)} entries, {len(data)} bytes")


main(*sys.argv[1:])
