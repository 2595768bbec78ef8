import type { Path, Protocol } from "../../plugin/protocol.ts";
import type { ProtocolEndpoint } from "../../plugin/provider.ts";

/**
 * The path at which an endpoint answers what a route calls by this name: the endpoint's own, else its protocol's. Undefined: it
 * does not have this operation. The name may be a client's word.
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
