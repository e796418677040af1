"""To and from other people's tools: tables, arrays, maps, road networks, OpenDP.

Each function needs the package it speaks to and says which extra installs it. Functions are
imported on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from optmech.base.lazily import lazily

if TYPE_CHECKING:
    from optmech.designs.cells import explore as explore
    from optmech.designs.cells import features as features
    from optmech.designs.cells import to_geopandas as to_geopandas
    from optmech.designs.cells import write_geojson as write_geojson
    from optmech.exchange.adoption import adopt as adopt
    from optmech.exchange.geo import from_geopandas as from_geopandas
    from optmech.exchange.geo import from_h3 as from_h3
    from optmech.exchange.geo import read_geojson as read_geojson
    from optmech.exchange.matrices import read_matrix as read_matrix
    from optmech.exchange.matrices import read_netcdf as read_netcdf
    from optmech.exchange.matrices import read_parquet as read_parquet
    from optmech.exchange.matrices import to_frame as to_frame
    from optmech.exchange.matrices import to_xarray as to_xarray
    from optmech.exchange.matrices import write_matrix as write_matrix
    from optmech.exchange.matrices import write_netcdf as write_netcdf
    from optmech.exchange.matrices import write_parquet as write_parquet
    from optmech.exchange.measurement import noise_to_dp_accounting as noise_to_dp_accounting
    from optmech.exchange.measurement import noise_to_opendp as noise_to_opendp
    from optmech.exchange.measurement import noise_to_scipy as noise_to_scipy
    from optmech.exchange.measurement import to_opendp as to_opendp
    from optmech.exchange.measurement import write_noise_table as write_noise_table
    from optmech.exchange.roads import read_osm as read_osm
else:
    __getattr__, __dir__ = lazily(__name__)
