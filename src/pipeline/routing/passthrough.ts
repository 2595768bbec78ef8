// Which endpoints have a model, and whether a client's bytes may travel to one as they are.
import { findTranslatingHook } from "../hooks/hook-chain.ts";
import type { MountedEndpoint, MountedFrontend } from "../exchange/mounted.ts";

export function servesModel(
  e: MountedEndpoint,
  protocols: readonly string[] | undefined,
  model: string,
): boolean {
  if (e.protocol && protocols) return protocols.includes(e.protocol.id);
  return e.definition.servesModel?.(model) ?? true;
}

/** Nothing, when client's bytes may travel as they are; else the reason in words. */
export function findTranslationReason(
  frontend: MountedFrontend,
  endpoint: MountedEndpoint,
  model: string,
  provider: string,
  stream: boolean,
): string | undefined {
  const clientProtocol = frontend.protocol?.id;
  if (!endpoint.protocol) return "the endpoint is native";
  if (endpoint.protocol.id !== clientProtocol) return `the endpoint speaks ${endpoint.protocol.id}`;
  if (!endpoint.protocol.client?.createPassthrough) return `${clientProtocol} has no relay`;
  const streams = endpoint.definition.streaming ?? "on_request";
  if ((streams === "always" && !stream) || (streams === "never" && stream))
    return `the endpoint ${streams} streams`;
  return findTranslatingHook(frontend.hookChain, model, provider);
}
