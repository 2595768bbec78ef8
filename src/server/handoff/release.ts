// Checks and lists what a gateway must release for hot restart: resources that only one process may
// have.
import type { GatewayOptions, InheritedSockets } from "../gateway-options.ts";
import { readGatewayConfig } from "../../runtime/reload/read-config.ts";
import type { GatewayConfig } from "../../config/gateway-config.ts";
import { fail } from "../../model/error.ts";
import { changedStaticKeys } from "../../runtime/reload/static-keys.ts";
import { descriptorOf, type DescriptorRegistry } from "./descriptors.ts";
import type { ListenerHandle } from "../../runtime/http/listener.ts";
import type { BoundAddress } from "../../runtime/http/listen-targets.ts";
import type { Store } from "../../plugin/store/store.ts";
import type { InheritedSocket } from "./new-process.ts";

/** Throws an error that explains why this gateway cannot be replaced while it serves. */
export async function assertReplaceable(
  options: GatewayOptions,
  { config, store }: { config: GatewayConfig; store: Pick<Store, "lease" | "supportsHandoff"> },
): Promise<void> {
  const cannot = (why: string) =>
    fail("invalid", `${why} Stop the gateway and start it again.`, { code: "not_replaceable" });
  if (process.platform === "win32") cannot("Windows cannot pass an open port to another process.");
  if (process.pid === 1)
    cannot(
      "The gateway is the container's main process, so replacing it would stop the container.",
    );
  if (!store.lease && !store.supportsHandoff)
    cannot(`The store ${config.store.use} allows only one process.`);
  const loaded = await readGatewayConfig(options);
  if (!loaded.config)
    return fail("invalid", "gateway.yaml has errors. Run tollgate check to list them.", {
      code: "config",
    });
  // The number of workers may change with the new process.
  const differing = changedStaticKeys(config, loaded.config).filter((key) => key !== "workers");
  if (differing.length > 0)
    cannot(`${differing.join(", ")} in gateway.yaml cannot change without a restart.`);
}

/**
 * Returns the open sockets in the order in which the new process expects them: clients as in
 * `listen`, then the admin listener.
 */
export function listOpenSockets(
  listener: Pick<ListenerHandle, "servers"> | { readonly addresses: readonly BoundAddress[] },
  admin: ListenerHandle | undefined,
  descriptors: DescriptorRegistry,
): readonly InheritedSocket[] {
  const clients =
    "addresses" in listener
      ? listener.addresses.map((at) => descriptors.find(at))
      : listener.servers.map(descriptorOf);
  const own = admin && descriptorOf(admin.server);
  const all = [
    ...clients.map((fd) => ({ fd, name: "clients" as const })),
    ...(admin ? [{ fd: own, name: "admin" as const }] : []),
  ];
  return all.map(({ fd, name }) => ({
    name,
    fd:
      fd ??
      fail("unavailable", "This runtime cannot pass an open port to another process.", {
        code: "no_descriptor",
      }),
  }));
}

/**
 * Returns the paths of Unix sockets that this gateway opens itself. `handed`: inherited
 * descriptors, which replace the first sockets and belong to others.
 */
export const listOwnSocketPaths = (
  { listen, admin }: Pick<GatewayConfig, "listen" | "admin">,
  handed: InheritedSockets | undefined,
): readonly string[] => [
  ...listen.slice(handed?.clients.length ?? 0).flatMap(({ socket }) => socket ?? []),
  ...(admin && "socket" in admin.address && handed?.admin === undefined
    ? [admin.address.socket]
    : []),
];
