#!/usr/bin/env python3
"""Writes the files of the corpus anew."""

import steps
import fixtures  # noqa: F401
import kinds  # noqa: F401
import objects  # noqa: F401
import lists  # noqa: F401
import definitions  # noqa: F401
import rights  # noqa: F401
import accounts  # noqa: F401
import sequences  # noqa: F401
import values  # noqa: F401
import changes  # noqa: F401
import probes  # noqa: F401
import own  # noqa: F401
import devices  # noqa: F401
import raw  # noqa: F401
import writes  # noqa: F401

steps.write()
