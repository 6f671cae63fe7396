"""Settings of a control plane on one machine, as `bin/demo` starts it."""

from fabric.settings.base import *
