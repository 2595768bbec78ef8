// Finds the endpoints for a model, and decides whether a client's bytes may be forwarded to them
// unchanged.
import type { MountedEndpoint, MountedFrontend } from "../exchange/mounted.ts";

export function servesModel(
  e: MountedEndpoint,
  protocols: readonly string[] | undefined,
  model: string,
): boolean {
  if (e.protocol && protocols) return protocols.includes(e.protocol.id);
  return e.definition.servesModel?.(model) ?? true;
}

/**
 * Returns the reason in words why a request must be translated, or undefined if the client's bytes
 * may be forwarded unchanged.
 */
export function findTranslationReason(
  frontend: MountedFrontend,
  endpoint: MountedEndpoint,
  model: string,
  provider: string,
  stream: boolean,
): string | undefined {
  const clientProtocol = frontend.protocol?.id;
  if (!endpoint.protocol) return "the endpoint is native";
  if (endpoint.protocol.id !== clientProtocol) return `the endpoint uses ${endpoint.protocol.id}`;
  if (!endpoint.protocol.client?.createPassthrough)
    return `${clientProtocol} does not support relaying`;
  const streams = endpoint.definition.streaming ?? "on_request";
  if ((streams === "always" && !stream) || (streams === "never" && stream))
    return `the endpoint ${streams} streams`;
  return frontend.hooks.translatingHook(model, provider);
}
