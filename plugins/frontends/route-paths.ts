import { fail, type RequestHead, type Body, type Protocol, type RouteInput } from "tollgate/plugin";

/**
 * Returns the paths of all base URLs that users configure: with the version, without it, or with it
 * twice. A trailing slash has no effect.
 */
export const versionedPaths = (path: string) => [`/v1${path}`, path, `/v1/v1${path}`] as const;

/**
 * Returns the paths for clients of Azure's OpenAI, which send the version in the path or its date
 * in the query.
 */
export const azurePaths = (path: string) => [`/openai/v1${path}`, `/openai${path}`] as const;

/** Returns the paths for OpenAI's SDKs: those of all base URLs, and those of Azure. */
export const openaiPaths = (path: string): string[] => [
  ...versionedPaths(path),
  ...azurePaths(path),
];

/** Returns the paths below the base URL that Google documents for OpenAI's SDKs. */
export const googlePaths = (path: string) => [`/v1beta/openai${path}`] as const;

/** A deployment is a model name, which may contain slashes. */
const DEPLOYMENT_PATHS = [":model", ":provider/:model", ":provider/:vendor/:model"];

/** Returns the route of Azure's older clients, whose paths contain the model. */
export const deploymentRoute = (path: string, protocol: Protocol) => ({
  method: "POST",
  path: DEPLOYMENT_PATHS.map((model) => `/openai/deployments/${model}${path}`),
  actionType: "generate" as const,
  protocol: withModelFromPath(protocol),
  readInput: readDeployment,
});

/**
 * Returns the protocol for paths that contain the model. The body may omit `model` or set it to
 * null.
 */
function withModelFromPath(protocol: Protocol): Protocol {
  const server = protocol.server!;
  const {
    required = [],
    properties,
    ...schema
  } = server.schema as {
    required?: readonly string[];
    properties?: object;
  };
  const rest = required.filter((field) => field !== "model");
  const named = { ...properties, model: { type: ["string", "null"] } } as const;
  return {
    ...protocol,
    server: { ...server, schema: { ...schema, properties: named, required: rest } },
  };
}

/** Reads the model from a deployment path. It takes precedence over the model in the body. */
export function readDeployment({ params }: RequestHead, _body: Body): RouteInput {
  const { provider, vendor, model } = params;
  const name = [provider, vendor, model].filter((part) => part !== undefined).join("/");
  if (name === "") fail("invalid", "Missing deployment in the path.", { param: "model" });
  return { model: name, edits: { model: name } };
}
