"""To and from other people's tools: tables, arrays, maps, road networks, OpenDP.

Each function needs the package it speaks to and says which extra installs it. Functions are
imported on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from optmech.base.names import lazily

if TYPE_CHECKING:
    from optmech.designs.cells import (
        explore as explore,
        features as features,
        to_geopandas as to_geopandas,
        write_geojson as write_geojson,
    )
    from optmech.exchange.adoption import adopt as adopt
    from optmech.exchange.geo import (
        from_geopandas as from_geopandas,
        from_h3 as from_h3,
        read_geojson as read_geojson,
        read_osm as read_osm,
    )
    from optmech.exchange.matrices import (
        read_matrix as read_matrix,
        read_netcdf as read_netcdf,
        read_parquet as read_parquet,
        to_frame as to_frame,
        to_xarray as to_xarray,
        write_matrix as write_matrix,
        write_netcdf as write_netcdf,
        write_parquet as write_parquet,
    )
    from optmech.exchange.measurement import (
        to_dp_accounting as to_dp_accounting,
        to_opendp as to_opendp,
    )
else:
    __getattr__, __dir__ = lazily(__name__, "exchange.")
