// Clients on the official TypeScript SDKs: the newest version, and one that is a year older.
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { installed, type Package } from "../install.ts";

export const SDK_OLD: Package = {
  name: "@modelcontextprotocol/sdk",
  version: "1.23.0",
  main: "package.json",
};
export const SDK: Package = { ...SDK_OLD, version: "1.32.2" };
export const CLIENT: Package = {
  name: "@modelcontextprotocol/client",
  version: "2.4.0",
  main: "package.json",
};

/** A connected client. */
export interface Connected {
  readonly client: any;
  /** Revision that it speaks with the gateway. */
  readonly revision: string;
}

export interface ConnectOptions {
  readonly url: string;
  readonly key: string;
  readonly capabilities?: object;
}

export const load = async (of: Package, path: string): Promise<any> =>
  import(pathToFileURL(join(dirname(await installed(of)), path)).href);

const headersOf = (key: string) => ({ Authorization: `Bearer ${key}` });

/** Connects a client of an SDK with sessions. */
export async function connectSdk(
  of: Package,
  { url, key, capabilities = {} }: ConnectOptions,
): Promise<Connected> {
  const { Client } = await load(of, "dist/esm/client/index.js");
  const { StreamableHTTPClientTransport } = await load(of, "dist/esm/client/streamableHttp.js");
  const client = new Client({ name: "matrix", version: "1" }, { capabilities });
  const { CreateMessageRequestSchema } = await load(of, "dist/esm/types.js");
  if ("sampling" in capabilities)
    client.setRequestHandler(CreateMessageRequestSchema, () => ({
      role: "assistant",
      model: "m",
      content: { type: "text", text: "sampled" },
    }));
  const requestInit = { headers: headersOf(key) };
  const transport = new StreamableHTTPClientTransport(new URL(url), { requestInit });
  await client.connect(transport);
  return { client, revision: transport.protocolVersion };
}

/** Connects the newest client, which speaks each generation. */
export async function connectNewest({ url, key }: ConnectOptions): Promise<Connected> {
  const { Client, StreamableHTTPClientTransport } = await load(CLIENT, "dist/index.mjs");
  const client = new Client(
    { name: "matrix", version: "1" },
    { capabilities: {}, versionNegotiation: { mode: "auto" } },
  );
  const requestInit = { headers: headersOf(key) };
  await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit }));
  return { client, revision: client.getNegotiatedProtocolVersion() };
}

/** Clients by the name that the matrix shows. */
export const CONNECTS: readonly (readonly [
  name: string,
  connect: (of: ConnectOptions) => Promise<Connected>,
])[] = [
  ["sdk 1.23.0", (of) => connectSdk(SDK_OLD, of)],
  ["sdk 1.32.2", (of) => connectSdk(SDK, of)],
  ["client 2.4.0", connectNewest],
];
