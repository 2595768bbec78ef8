// Mounts the parts of a plugin: endpoints with their pools, body validators, and credential
// clients.
import type { ValidateFunction } from "ajv";
import { createCompiler, type SchemaRules } from "../../config/schema-compiler.ts";
import { isMetadataUrl } from "../../lib/net/egress-guard.ts";
import type { LifetimeScope } from "../../lib/lifetime-scope.ts";
import type { Provider } from "../../plugin/provider.ts";
import type {
  MountedEndpoint,
  MountedFrontend,
  MountedProvider,
} from "../../pipeline/exchange/mounted.ts";
import { ConnectionPool } from "../../pipeline/upstream/connection-pool.ts";
import type { Services } from "../services.ts";
import { createEndpointClient } from "../plugin-host/provider-client.ts";

export function mountEndpoint(
  endpoint: Provider["endpoints"][number],
  connectMs: number,
  services: Services,
  scope: LifetimeScope,
  metadata: boolean,
): MountedEndpoint | { why: string } {
  const base = endpoint.base === undefined ? undefined : URL.parse(endpoint.base);
  if (base === null || (base && !/^https?:$/.test(base.protocol)))
    return { why: `${endpoint.base} is not an HTTP URL` };
  if (base && !metadata && isMetadataUrl(base))
    return {
      why: `${endpoint.base} belongs to the cloud metadata service, which the plugin does not declare in needs.metadata`,
    };
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
  const { client, socket, id } = endpoint.protocol;
  if (!client && !socket) return { why: `its endpoint uses ${id}, which has no client half` };
  const connections = new ConnectionPool();
  scope.defer(() => connections.close());
  return {
    definition: endpoint,
    operation: endpoint.protocol.operationSpec.name,
    protocol: endpoint.protocol,
    transport: {
      pool: line!.pool,
      openConnection: line!.openConnection,
      connect: line!.connect,
      connections,
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

/**
 * Schema rules for client bodies. Validation stops at the first error and does not modify the body.
 */
export const BODY_SCHEMA_RULES: SchemaRules = {
  options: {
    strict: false,
    validateFormats: false,
    // Compiling the draft-07 meta-schema takes longer than compiling all body schemas.
    validateSchema: false,
    logger: false,
    // Lengths are in UTF-16 units, because counting the code points of 30 MB of text takes 100 ms.
    unicode: false,
  },
};
const bodyCompiler = createCompiler(BODY_SCHEMA_RULES);
const compiledBodies = new WeakMap<object, ValidateFunction>();

/**
 * Returns the validator of a schema. The schema is compiled when the first body arrives, so that
 * startup does not wait for unused protocols.
 */
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

/**
 * Creates a client for a provider's first endpoint with one of its credentials. It is used to list
 * models and check readiness.
 */
export function createCredentialClient(
  provider: MountedProvider,
  credential: number,
  signal: AbortSignal,
) {
  return createEndpointClient(provider, provider.endpoints[0], {
    credential: provider.credentials[credential]!,
    signal,
    bound: "modelList",
  });
}
