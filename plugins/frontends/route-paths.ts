import { fail, type RequestHead, type Body, type Protocol, type RouteInput } from "tollgate/plugin";

/** As users write a base address: with the version, without, or with it twice. A trailing slash is no other path. */
export const versionedPaths = (path: string) => [`/v1${path}`, path, `/v1/v1${path}`] as const;

/** As clients of Azure's OpenAI write it: with its version, or with a date of one in the query. */
export const azurePaths = (path: string) => [`/openai/v1${path}`, `/openai${path}`] as const;

/** Below the base URL that Google documents for OpenAI's SDKs. */
export const googlePaths = (path: string) => [`/v1beta/openai${path}`] as const;

/** A deployment is a model's name, which may have slashes in it. */
const DEPLOYMENT_PATHS = [":model", ":provider/:model", ":provider/:vendor/:model"];

/** Where Azure's older clients ask, with the model in the path. */
export const deploymentPaths = (path: string) =>
  DEPLOYMENT_PATHS.map((model) => `/openai/deployments/${model}${path}`);

/** The same protocol where the model stands in the path: its body need not name one, and may name none. */
export function withModelFromPath(protocol: Protocol): Protocol {
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

/** The model of such a path: it takes the place of the one in the body. */
export function readDeployment({ params }: RequestHead, _body: Body): RouteInput {
  const { provider, vendor, model } = params;
  const name = [provider, vendor, model].filter((part) => part !== undefined).join("/");
  if (name === "") fail("invalid", "The path names no deployment.", { param: "model" });
  return { model: name, edits: { model: name } };
}
