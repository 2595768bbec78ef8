import type { Path, Protocol } from "../../plugin/protocol.ts";
import type { ProtocolEndpoint } from "../../plugin/provider.ts";

/**
 * Returns the path for an operation that a route calls by this name. The endpoint's own path takes
 * precedence over its protocol's. Returns undefined if the endpoint does not have the operation.
 * The name may come from the client.
 */
export function findOperationPath(
  name: string,
  { paths }: Pick<ProtocolEndpoint, "paths">,
  protocol: Protocol,
): Path | undefined {
  if (paths && Object.hasOwn(paths, name)) return paths[name];
  const own = protocol.client!.paths;
  return Object.hasOwn(own, name) ? own[name] : undefined;
}
