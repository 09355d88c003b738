"""The checked template language of plans and prompts: Jinja2's syntax, item access only, nothing that can be called.

>>> from capsule.templates import compile_value
>>> template = compile_value({"url": "{{ api }}/releases", "limit": "{{ inputs.limit }}"})
>>> template.render({"api": "https://example.org", "inputs": {"limit": 3}})
{'url': 'https://example.org/releases', 'limit': 3}
"""

from capsule.templates.filters import FILTERS
from capsule.templates.lexer import BadTemplate
from capsule.templates.parser import RESERVED_WORDS
from capsule.templates.template import Template, compile_value
from capsule.templates.tree import Path
from capsule.templates.values import MAX_RESULT

__all__ = ["FILTERS", "MAX_RESULT", "RESERVED_WORDS", "BadTemplate", "Path", "Template", "compile_value"]
