# `just` lists the recipes. It is in the development environment (.venvs/dev/bin/just), so nothing needs to be installed.

set lazy

bin := `sh scripts/environment dev` / "bin"
compile := "uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-emit-find-links --custom-compile-command 'just lock'"

_list:
    @{{ bin }}/just --list --unsorted

# all that can be checked without running the product
check:
    {{ bin }}/ruff format --check
    {{ bin }}/ruff check
    {{ bin }}/mypy
    {{ bin }}/lint-imports --no-logo
    {{ bin }}/yamllint --strict .
    {{ bin }}/zizmor --offline --no-progress --quiet .github

# the tests; arguments go to pytest
test *arguments:
    scripts/test {{ arguments }}

# the tests with branch coverage: 90 % in all, 95 % in policy, gate and store
cover *arguments:
    scripts/cover {{ arguments }}

# what a machine can put right: format, lint fixes, the layer picture
fix:
    {{ bin }}/ruff check --fix
    {{ bin }}/ruff format
    {{ bin }}/python tools/layers.py --write

# measure, as ratios with the goal beside each; one row by name, or all
bench *name:
    {{ bin }}/python -m bench {{ name }}

# build the documentation into site/
docs:
    "$(sh scripts/environment docs)"/bin/zensical build --clean --strict

# write the lock files anew; `just lock --upgrade` takes newer versions (needs uv)
lock *arguments:
    {{ compile }} pyproject.toml --group dev --output-file locks/dev.txt {{ arguments }}
    {{ compile }} pyproject.toml --group build --constraints locks/dev.txt --output-file locks/run.txt
    {{ compile }} --group docs --output-file locks/docs.txt {{ arguments }}
