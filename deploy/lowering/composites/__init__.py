"""What a network computes besides sums: products, quotients, roots, functions. One kind a file.

Each is a frozen dataclass that satisfies :class:`entrain.deploy.lowering.quantity.Composite`.
"""
