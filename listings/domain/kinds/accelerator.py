"""The accelerator kind: the five lines of a listing, its performance figures and its price."""

from listings.domain.kinds.countries import COUNTRY_PATTERN
from listings.domain.kinds.schema import Direction, FieldSpec, Kind, PriceSpec, ValueType

_SLUG = r"[a-z0-9]+(?:-[a-z0-9]+)*"
_SLUG_WORDS = "lower-case letters and digits joined by single hyphens"
_INVENTORY = "Agent inventory, signed report"
_CHALLENGE = "Server challenge under a fresh nonce"

_ACCELERATOR_LINE = (
    FieldSpec(
        "device_class", "Device class", ValueType.TEXT, line=1, required=True, max_length=60,
        pattern=_SLUG, pattern_words=f"a class such as nvidia-h100-80gb-sxm: {_SLUG_WORDS}",
        method="Device id, then speed against the class range",
    ),
    FieldSpec(
        "unit_count", "Accelerators", ValueType.INTEGER, line=1, required=True, low=1, high=1024,
        direction=Direction.HIGHER, method=_INVENTORY,
    ),
    FieldSpec(
        "unit_kind", "Unit", ValueType.CHOICE, line=1, required=True, choices=("whole", "slice"),
        method="Driver query",
    ),
    FieldSpec(
        "slice_kind", "Kind of slice", ValueType.CHOICE, line=1,
        choices=("mig", "partition", "time_slice"), method="Driver query",
    ),
    FieldSpec(
        "slice_profile", "Slice profile", ValueType.TEXT, line=1, max_length=40,
        method="Driver query",
    ),
)  # fmt: skip

_MEMORY_LINE = (
    FieldSpec(
        "memory_mib", "Memory, allocatable", ValueType.INTEGER, line=2,
        unit="MiB", required=True, low=256, high=16_777_216, direction=Direction.HIGHER,
        tolerance_bps=100, method="Filled, mixed and read back under a nonce",
    ),
)  # fmt: skip

_HOST_LINE = (
    FieldSpec("cpu_model", "CPU model", ValueType.TEXT, line=3, required=True, method=_INVENTORY),
    FieldSpec(
        "cpu_cores", "CPU cores", ValueType.INTEGER, line=3, required=True, low=1, high=4096,
        direction=Direction.HIGHER, method=_INVENTORY,
    ),
    FieldSpec(
        "instruction_set", "Instruction set", ValueType.TEXT, line=3, max_length=40,
        method=_INVENTORY,
    ),
    FieldSpec(
        "system_memory_mib", "System memory", ValueType.INTEGER, line=3, unit="MiB",
        required=True, low=256, high=268_435_456, direction=Direction.HIGHER,
        tolerance_bps=100, method=_INVENTORY,
    ),
    FieldSpec(
        "disk_kind", "Local storage", ValueType.CHOICE, line=3, required=True,
        choices=("nvme", "ssd", "hdd", "network", "virtual"), method=_INVENTORY,
    ),
    FieldSpec(
        "disk_gib", "Local storage, size", ValueType.NUMBER, line=3, unit="GiB", required=True,
        low=1, high=10_485_760, direction=Direction.HIGHER, tolerance_bps=200,
        method="Free space on the work folder's file system",
    ),
    FieldSpec(
        "disk_read_mb_s", "Disk read", ValueType.NUMBER, line=3, unit="MB/s", low=1,
        high=1_000_000, direction=Direction.HIGHER, tolerance_bps=2_000,
        method="Timed reads by the agent",
    ),
    FieldSpec(
        "disk_write_mb_s", "Disk write", ValueType.NUMBER, line=3, unit="MB/s", low=1,
        high=1_000_000, direction=Direction.HIGHER, tolerance_bps=2_000,
        method="Timed writes by the agent",
    ),
    FieldSpec(
        "network_down_mbit_s", "Network down", ValueType.NUMBER, line=3, unit="Mbit/s", low=1,
        high=10_000_000, direction=Direction.HIGHER, tolerance_bps=1_000,
        method="Timed transfer from the exchange",
    ),
    FieldSpec(
        "network_up_mbit_s", "Network up", ValueType.NUMBER, line=3, unit="Mbit/s", low=1,
        high=10_000_000, direction=Direction.HIGHER, tolerance_bps=1_000,
        method="Timed transfer to the exchange",
    ),
)  # fmt: skip

_INTERCONNECT_LINE = (
    FieldSpec(
        "interconnect", "Interconnect", ValueType.CHOICE, line=4, required=True,
        choices=("none", "pcie", "nvlink", "nvswitch", "xgmi", "infiniband", "roce"),
        method="Topology as the driver reports it",
    ),
    FieldSpec(
        "pcie_generation", "PCIe generation", ValueType.INTEGER, line=4, low=1, high=8,
        direction=Direction.HIGHER, method="Link state as the driver reports it",
    ),
    FieldSpec(
        "pcie_width", "PCIe width", ValueType.INTEGER, line=4, unit="lanes", low=1, high=32,
        direction=Direction.HIGHER, method="Link state as the driver reports it",
    ),
    FieldSpec(
        "nvlink_version", "NVLink version", ValueType.INTEGER, line=4, low=1, high=9,
        direction=Direction.HIGHER, method="Link state as the driver reports it",
    ),
    FieldSpec(
        "peer_bandwidth_gb_s", "Peer bandwidth, lowest pair", ValueType.NUMBER, line=4,
        unit="GB/s", low=0, high=100_000, direction=Direction.HIGHER, tolerance_bps=500,
        method="Copies between all pairs",
    ),
)  # fmt: skip

_RUNTIME_LINE = (
    FieldSpec(
        "runtime", "Runtime", ValueType.TEXT, line=5, required=True, max_length=60,
        method=_INVENTORY,
    ),
    FieldSpec(
        "driver_version", "Driver", ValueType.TEXT, line=5, max_length=60, method="Driver query"
    ),
    FieldSpec(
        "interface", "Interface", ValueType.CHOICE, line=5, required=True,
        choices=("http", "ssh", "jupyter", "kubernetes"), method="Called from outside",
    ),
)  # fmt: skip

_PERFORMANCE = (
    FieldSpec(
        "compute_gops", "Integer matrix product", ValueType.NUMBER, unit="GOPS", low=0,
        high=1_000_000_000, direction=Direction.HIGHER, tolerance_bps=1_500, method=_CHALLENGE,
    ),
    FieldSpec(
        "memory_bandwidth_gb_s", "Memory bandwidth", ValueType.NUMBER, unit="GB/s", low=0,
        high=1_000_000, direction=Direction.HIGHER, tolerance_bps=1_500, method=_CHALLENGE,
    ),
    FieldSpec(
        "isolation", "Isolation", ValueType.CHOICE, required=True,
        choices=("none", "container", "sandbox", "virtual_machine"),
        method="How the agent started the workload",
    ),
)  # fmt: skip

ACCELERATOR = Kind(
    name="accelerator",
    title="Accelerator",
    fields=(
        *_ACCELERATOR_LINE,
        *_MEMORY_LINE,
        *_HOST_LINE,
        *_INTERCONNECT_LINE,
        *_RUNTIME_LINE,
        *_PERFORMANCE,
    ),
    statements=(
        FieldSpec("title", "Title", ValueType.TEXT, required=True, max_length=120),
        FieldSpec(
            "region", "Region", ValueType.TEXT, required=True, max_length=40, pattern=_SLUG,
            pattern_words=f"a region such as eu-central: {_SLUG_WORDS}",
        ),
        FieldSpec(
            "country", "Country", ValueType.TEXT, required=True, max_length=2,
            pattern=COUNTRY_PATTERN,
            pattern_words="a country's two capital letters of ISO 3166-1, such as IS",
        ),
        FieldSpec(
            "depth", "Depth of stack", ValueType.CHOICE, required=True, choices=("container",)
        ),
        FieldSpec(
            "max_hours", "Longest lease", ValueType.INTEGER, unit="h", required=True, low=1,
            high=8_784,
        ),
        FieldSpec("interruptible", "Interruptible", ValueType.FLAG, required=True),
    ),
    price=PriceSpec(
        meter_unit="accelerator_second",
        per_quantity=3600,
        words="per accelerator-hour",
        max_micros=10_000_000_000,
    ),
    lines={
        1: "Accelerator",
        2: "Memory",
        3: "Host",
        4: "Interconnect",
        5: "Runtime and access",
        0: "Performance and isolation",
    },
    needed_with=(("unit_kind", "slice", "slice_kind"), ("slice_kind", "mig", "slice_profile")),
)  # fmt: skip
