"""Neutron mechanism driver that reports what agents would: ports and addresses become active at once.

A host whose name begins with "unbindable" is refused, so that a test can have a port whose binding failed.
"""

from neutron_lib import constants
from neutron_lib import context as neutron_context
from neutron_lib.api.definitions import portbindings
from neutron_lib.callbacks import events, registry, resources
from neutron_lib.plugins import constants as plugins
from neutron_lib.plugins import directory
from neutron_lib.plugins.ml2 import api

ROUTER_PORTS = (constants.DEVICE_OWNER_ROUTER_INTF, constants.DEVICE_OWNER_ROUTER_GW)
DETAILS = {portbindings.CAP_PORT_FILTER: True, portbindings.OVS_HYBRID_PLUG: False}


class SimulatedMechanismDriver(api.MechanismDriver):
    """Binds every port to the first segment that is offered."""

    connectivity = portbindings.CONNECTIVITY_L2

    def initialize(self):
        for event in (events.AFTER_CREATE, events.AFTER_UPDATE):
            registry.subscribe(self._report_floating_ip, resources.FLOATING_IP, event)

    def bind_port(self, context):
        if not context.host or context.host.startswith("unbindable"):
            return
        is_direct = context.current.get(portbindings.VNIC_TYPE) == portbindings.VNIC_DIRECT
        interface = portbindings.VIF_TYPE_HW_VEB if is_direct else portbindings.VIF_TYPE_OVS
        if context.segments_to_bind:
            segment = context.segments_to_bind[0][api.ID]
            context.set_binding(segment, interface, DETAILS, status=constants.PORT_STATUS_ACTIVE)

    def create_port_postcommit(self, context):
        if context.current["device_owner"] in ROUTER_PORTS:
            self._report_port(context.current["id"])

    def update_port_postcommit(self, context):
        became_router_port = context.original["device_owner"] not in ROUTER_PORTS
        if became_router_port and context.current["device_owner"] in ROUTER_PORTS:
            self._report_port(context.current["id"])

    @staticmethod
    def _report_port(port):
        admin = neutron_context.get_admin_context()
        directory.get_plugin().update_port_status(admin, port, constants.PORT_STATUS_ACTIVE)

    @staticmethod
    def _report_floating_ip(resource, event, trigger, payload):
        address = payload.latest_state
        status = constants.FLOATINGIP_STATUS_ACTIVE if address.get("port_id") else constants.FLOATINGIP_STATUS_DOWN
        if address.get("status") != status:
            # The session of the caller: deleting a port calls this inside its transaction, and another session would
            # wait for the row that this one has locked.
            router_plugin = directory.get_plugin(plugins.L3)
            router_plugin.update_floatingip_status(payload.context.elevated(), address["id"], status)
