// What a generation makes of a plugin's parts: endpoints with their pools, bodies' validators, lines.
import type { ValidateFunction } from "ajv";
import { createCompiler, type SchemaRules } from "../../config/schema-compiler.ts";
import { isMetadataUrl } from "../../lib/net/metadata-service.ts";
import type { LifetimeScope } from "../../lib/lifetime-scope.ts";
import type { Provider } from "../../plugin/provider.ts";
import type {
  MountedEndpoint,
  MountedFrontend,
  MountedProvider,
} from "../../pipeline/exchange/mounted.ts";
import type { Services } from "../services.ts";
import { createProviderClient } from "../plugin-host/provider-client.ts";

export function mountEndpoint(
  endpoint: Provider["endpoints"][number],
  connectMs: number,
  services: Services,
  scope: LifetimeScope,
  metadata: boolean,
): MountedEndpoint | { why: string } {
  const base = endpoint.base === undefined ? undefined : URL.parse(endpoint.base);
  if (base === null || (base && !/^https?:$/.test(base.protocol)))
    return { why: `${endpoint.base} is not an http address` };
  if (base && !metadata && isMetadataUrl(base))
    return { why: `${endpoint.base} is the cloud's metadata service, and its needs do not say so` };
  const line = base && acquirePool(base.origin, connectMs, services, scope);
  const pool = line?.pool;
  if (!("protocol" in endpoint))
    return {
      definition: endpoint,
      operation: endpoint.operation,
      protocol: null,
      transport: null,
      nativePool: pool,
    };
  if (!endpoint.protocol.client)
    return { why: `its endpoint speaks ${endpoint.protocol.id}, which has no client half` };
  return {
    definition: endpoint,
    operation: endpoint.protocol.operationSpec.name,
    protocol: endpoint.protocol,
    transport: {
      pool: line!.pool,
      openConnection: line!.openConnection,
      origin: base!.origin,
      pathPrefix: base!.pathname.replace(/\/+$/, ""),
      definition: endpoint,
    },
    nativePool: pool,
  };
}

function acquirePool(origin: string, connectMs: number, services: Services, scope: LifetimeScope) {
  const line = services.pools.acquire(origin, connectMs);
  scope.defer(line.release);
  return line;
}

/** Validates clients' bodies: it stops at the first thing wrong, and changes nothing. */
export const BODY_SCHEMA_RULES: SchemaRules = {
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
const bodyCompiler = createCompiler(BODY_SCHEMA_RULES);
const compiledBodies = new WeakMap<object, ValidateFunction>();

/** Compiled when the first body comes, so that a start does not wait for protocols that may never be spoken. */
function validatorOf(schema: object): ValidateFunction {
  let check = compiledBodies.get(schema);
  if (!check) compiledBodies.set(schema, (check = bodyCompiler.compile(schema)));
  return check;
}

export function createBodyValidator(schema: unknown): MountedFrontend["validate"] {
  if (typeof schema !== "object" || schema === null) return () => undefined;
  let check: ValidateFunction | undefined;
  return (body) => {
    check ??= validatorOf(schema);
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
export function createCredentialClient(
  provider: MountedProvider,
  credential: number,
  signal: AbortSignal,
) {
  const endpoint = provider.endpoints[0];
  return createProviderClient({
    reach: endpoint?.definition as never,
    dispatcher: endpoint?.nativePool,
    credential: provider.credentials[credential]!,
    allowedOrigins: provider.extraOrigins,
    allowsMetadataService: provider.allowsMetadataService,
    proxy: provider.proxy,
    signal,
    bound: "modelList",
  });
}
