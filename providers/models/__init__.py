"""Providers, their machines, what was measured on them, and who holds which unit until when."""

from providers.models.capacity import Device, Hold, Unit
from providers.models.classes import HardwareClass
from providers.models.enrolment import Enrolment, EnrolmentToken
from providers.models.evidence import Challenge, HardwareReport, Observation
from providers.models.nodes import DesiredItem, Node, NodeBeat, NodeKey, NodeTransition
from providers.models.organisations import Provider

__all__ = [
    "Challenge",
    "DesiredItem",
    "Device",
    "Enrolment",
    "EnrolmentToken",
    "HardwareClass",
    "HardwareReport",
    "Hold",
    "Node",
    "NodeBeat",
    "NodeKey",
    "NodeTransition",
    "Observation",
    "Provider",
    "Unit",
]
