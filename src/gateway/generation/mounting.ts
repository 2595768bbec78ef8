// What a generation makes of a plugin's parts: endpoints with their pools, bodies' validators, lines.
import type { ValidateFunction } from "ajv";
import { compiler, type Rules } from "../../config/compile.ts";
import { namesMetadata } from "../../lib/metadata.ts";
import type { Scope } from "../../lib/scope.ts";
import type { Provider } from "../../plugin/provider.ts";
import type { MountedEndpoint, MountedFrontend, MountedProvider } from "../../walk/mounted.ts";
import type { Services } from "../services/services.ts";
import { createLine } from "./provider-access.ts";

export function mountEndpoint(
  endpoint: Provider["endpoints"][number],
  connectMs: number,
  services: Services,
  scope: Scope,
  metadata: boolean,
): MountedEndpoint | { why: string } {
  const base = endpoint.base === undefined ? undefined : URL.parse(endpoint.base);
  if (base === null || (base && !/^https?:$/.test(base.protocol)))
    return { why: `${endpoint.base} is not an http address` };
  if (base && !metadata && namesMetadata(base))
    return { why: `${endpoint.base} is the cloud's metadata service, and its needs do not say so` };
  const line = base && taken(base.origin, connectMs, services, scope);
  const pool = line?.pool;
  if (!("protocol" in endpoint))
    return { endpoint, kind: endpoint.kind, protocol: null, wire: null, pool };
  if (!endpoint.protocol.client)
    return { why: `its endpoint speaks ${endpoint.protocol.id}, which has no client half` };
  return {
    endpoint,
    kind: endpoint.protocol.work.kind,
    protocol: endpoint.protocol,
    wire: {
      pool: line!.pool,
      fresh: line!.fresh,
      origin: base!.origin,
      prefix: base!.pathname.replace(/\/+$/, ""),
      endpoint,
    },
    pool,
  };
}

function taken(origin: string, connectMs: number, services: Services, scope: Scope) {
  const line = services.pools.take(origin, connectMs);
  scope.defer(line.release);
  return line;
}

/** Validates clients' bodies: it stops at the first thing wrong, and changes nothing. */
export const BODIES: Rules = {
  options: {
    strict: false,
    validateFormats: false,
    // Draft-07's own schema takes longer to compile than every body's.
    validateSchema: false,
    logger: false,
    // Lengths are in UTF-16 units: counting the code points of a text of 30 MB takes 100 ms.
    unicode: false,
  },
};
const bodies = compiler(BODIES);
const compiled = new WeakMap<object, ValidateFunction>();

/** Compiled when the first body comes, so that a start does not wait for protocols that may never be spoken. */
function checkOf(schema: object): ValidateFunction {
  let check = compiled.get(schema);
  if (!check) compiled.set(schema, (check = bodies.compile(schema)));
  return check;
}

export function validator(schema: unknown): MountedFrontend["validate"] {
  if (typeof schema !== "object" || schema === null) return () => undefined;
  let check: ValidateFunction | undefined;
  return (body) => {
    check ??= checkOf(schema);
    if (check(body)) return undefined;
    const [first] = check.errors ?? [];
    const missing = first?.keyword === "required" ? `/${first.params["missingProperty"]}` : "";
    const allowed =
      first?.keyword === "enum"
        ? `: ${(first.params["allowedValues"] as unknown[]).map(String).join(", ")}`
        : "";
    return {
      pointer: (first?.instancePath ?? "") + missing,
      message: missing === "" ? `${first?.message ?? "is not valid"}${allowed}` : "is required",
    };
  };
}

/** The way to a provider's first endpoint under one of its credentials, to ask what it has and how it is. */
export function lineTo(provider: MountedProvider, credential: number, signal: AbortSignal) {
  const endpoint = provider.endpoints[0];
  return createLine({
    reach: endpoint?.endpoint as never,
    dispatcher: endpoint?.pool,
    credential: provider.credentials[credential]!,
    origins: provider.origins,
    metadata: provider.metadata,
    proxy: provider.proxy,
    signal,
    bound: "modelList",
  });
}
