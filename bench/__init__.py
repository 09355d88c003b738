"""What Capsule costs, as ratios with the goal beside each: `python -m bench [NAME…]` measures and prints one table.

Measurements, not tests: both sides of a ratio run in turns in one go, so that a busy machine slows both.
"""
