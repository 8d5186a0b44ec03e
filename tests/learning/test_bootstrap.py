"""Bootstrapped heads: who learns what, how they act together, and one head as R2D2."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from support.statistics import assert_close_to_binomial
from support.windows import Play, random_batch, rubbish
