"""`nsysmap cache`: the exports and results that are kept."""

from __future__ import annotations

import click


@click.group(short_help="List or clear cached exports and results.")
def cache() -> None:
    """What nsysmap keeps: each report is exported once, and a large one analysed once.

    \b
    Example:
      nsysmap cache clear
    """


@cache.command("clear", short_help="Remove all exports and results from the cache.")
def cache_clear() -> None:
    """Remove all exports and results from the cache.

    \b
    Example:
      nsysmap cache clear
    """
    from nsysmap.inputs.nsys.export_cache import clear_cache

    cleared = clear_cache()
    click.echo(
        f"removed {cleared.files} file{'' if cleared.files == 1 else 's'}, {cleared.size_bytes:,}"
        " bytes"
    )


@cache.command("path", short_help="Print the cache's folder.")
def cache_path() -> None:
    """Print the folder that exports and results are kept in.

    \b
    Example:
      du -sh "$(nsysmap cache path)"
    """
    from nsysmap.inputs.nsys.export_cache import cache_folder

    click.echo(cache_folder())


@cache.command("list", short_help="List the exports and results in the cache.")
def cache_list() -> None:
    """List the exports and results in the cache: size, time (for results, of last use), nsys
    version, file.

    \b
    Example:
      nsysmap cache list
    """
    import datetime

    from nsysmap.inputs.nsys.export_cache import cached

    for entry in cached():
        made_at = datetime.datetime.fromtimestamp(entry.made_at_s).isoformat(" ", "minutes")
        what = f"nsys {entry.nsys_version}" if entry.nsys_version else "results"
        click.echo(f"{entry.size_bytes:>15,}  {made_at}  {what:<19}  {entry.path.name}")
