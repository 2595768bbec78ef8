// Which endpoints have a model, and whether a client's bytes may travel to one as they are.
import { closer } from "../hooks.ts";
import type { MountedEndpoint, MountedFrontend } from "../mounted.ts";

export function serves(
  e: MountedEndpoint,
  protocols: readonly string[] | undefined,
  model: string,
): boolean {
  if (e.protocol && protocols) return protocols.includes(e.protocol.id);
  return e.endpoint.serves?.(model) ?? true;
}

/** Nothing, when client's bytes may travel as they are; else the reason in words. */
export function closedBy(
  frontend: MountedFrontend,
  endpoint: MountedEndpoint,
  model: string,
  provider: string,
  stream: boolean,
): string | undefined {
  const mine = frontend.protocol?.id;
  if (!endpoint.protocol) return "the endpoint is native";
  if (endpoint.protocol.id !== mine) return `the endpoint speaks ${endpoint.protocol.id}`;
  if (!endpoint.protocol.client?.relay) return `${mine} has no relay`;
  const streams = endpoint.endpoint.streams ?? "asked";
  if ((streams === "always" && !stream) || (streams === "never" && stream))
    return `the endpoint ${streams} streams`;
  return closer(frontend.chain, model, provider);
}
