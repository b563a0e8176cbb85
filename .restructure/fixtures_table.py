"""Launchers and their fixtures: qualified name -> fixtures by position, names of positional options, needed fixtures."""
PURE = {"timedelta", "frozenset", "ComputeSettings", "DriverSettings", "MonitorSettings", "unwatched", "FaultBounds", "RoleBinding", "service", "CallSettings", "instant", "with_room", "replace", "cast", "accounts", "user", "group", "range"}


def env(*fixtures, args=(), needed=(), many=False):
    return {"fixtures": list(fixtures), "args": list(args), "needed": list(needed), "many": many}


TABLE = {
    "tests.sim.runner.simulate": env("world", args=["seeds"], many=True),
    # compute
    "tests.compute.house.in_a_compute": env("compute"),
    "tests.compute.test_abuse._unmoved": env("compute", "home", "instance", needed=["way"]),
    # identity
    "tests.identity.house.in_a_house": env("identity"),
    "tests.identity.external_issuer.in_the_lobby": env("external_issuer"),
    "tests.identity.login_ground.at_home": env("logins"),
    "tests.identity.people_house.in_the_house": env("people", args=["make"]),
    "tests.identity.rights_door.at_the_door": env("authentication"),
    "tests.identity.rights_ground.on_ground": env("rights"),
    "tests.identity.tenancy_room.in_tenancy": env("tenancy"),
    "tests.identity.tokens_desk.at_a_desk": env("oauth"),
    "tests.linearizability.quotaroom.in_quotas": env("quotas", args=["seeds"]),
    "tests.identity.test_auditing.in_the_room": env("audit"),
    "tests.identity.test_external_seeding.on_a_store": env("store"),
    "tests.identity.test_federation_login.federated": env("federation", "upstream"),
    "tests.identity.test_oauth_records.as_a_member": env("oauth_records", "ann", "audit"),
    "tests.identity.test_tenancy_controllers.on_stage": env("tenancy", args=["seeds"], many=True),
    # region
    "tests.region.house.in_a_region": env("region"),
    "tests.region.test_abuse._in_a_region": env("region"),
    "tests.region.holdings_ground.on_site": env("region_storage"),
    "tests.region.images_ground.on_ground": env("region_images"),
    "tests.region.networks_ground.on_ground": env("region_networks"),
    "tests.region.servers_ground.in_yard": env("region_servers"),
    "tests.region.test_catalogue_api.in_catalogue": env("region_catalogue", "shop"),
    "tests.region.test_catalogue_clouds.in_store": env("world", "store"),
    "tests.region.test_catalogue_recent.with_oracle": env("oracle"),
    "tests.region.test_catalogue_seeding.in_store": env("store"),
    "tests.region.test_filestorage_classes.shelved": env("shelf"),
    "tests.region.test_images_snapshots.with_server": env("region", "images", "server"),
    "tests.region.test_kinds.in_a_store": env("store"),
    "tests.region.test_monitor_census.counting": env("counted"),
    "tests.region.test_monitor_polling.at_a_place": env("region_monitor"),
    # providers
    "tests.providers.cloud.in_cloud": env("cloud", args=["settings"], many=True),
    "tests.providers.simulated.worlds.in_cloud": env("scene", args=["catalogue"], many=True),
    "tests.providers.test_called.with_echo": env("echo", "through", "calls"),
    # store
    "tests.store.test_duties.in_simulation": env("world"),
    # reconcile
    "tests.reconcile.test_breaker.in_simulation": env("sample"),
    "tests.reconcile.test_driver.in_simulation": env("sample", args=["seeds"], many=True),
    "tests.reconcile.test_gone.in_simulation": env("sample", "store", args=["seeds"], many=True),
    "tests.reconcile.test_late_calls.in_simulation": env("sample"),
    "tests.reconcile.test_lifecycle.in_simulation": env("sample", "hands"),
    "tests.reconcile.test_scans.in_simulation": env("sample"),
    "tests.reconcile.test_queue.simulated": env("world", "queue", args=["seeds"], many=True),
    "tests.reconcile.test_unsettled.at_the_stud": env("stud"),
    # operations
    "tests.operations.test_recording.watched": env("scene"),
    "tests.operations.toy.on_stage": env("stage", args=["seeds"]),
    # clients, console
    "tests.clients.ground.apply": env("ground"),
    "tests.console.test_console.in_a_console": env("front", "home"),
}
