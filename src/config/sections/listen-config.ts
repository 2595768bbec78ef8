// The `listen` section: one address or a list of addresses for clients. This file contains the
// checks that a schema cannot express.
import type { ListenConfig } from "./network-config.ts";
import { problem } from "../problems.ts";
import { closedObject, flag, list, nonEmptyText, path } from "../schema-builders.ts";
import type { ReportProblem } from "../source/substitute-references.ts";
import { childPointer, isMapping, type Mapping } from "../source/config-tree.ts";

const DEFAULT_HOST = "127.0.0.1";
const DEFAULT_PORT = 8787;
/** Only the owner has access, as with the state directory. */
const DEFAULT_SOCKET_MODE = "0600";

const CLIENT_CERTIFICATES_SCHEMA = closedObject(
  {
    ca: path("PEM file with the certificate authorities that sign client certificates"),
    required: flag("Whether to reject clients without such a certificate", false),
  },
  {
    required: ["ca"],
    description:
      "Settings for client certificates. The `client-certificates` middleware decides " +
      "what each client may do",
  },
);

const TLS_SCHEMA = closedObject(
  {
    cert: path("PEM file with the certificate and its intermediate certificates"),
    key: path("PEM file with the private key"),
    min_version: {
      enum: ["1.2", "1.3"],
      default: "1.2",
      description: "Minimum TLS version",
    },
    client_certificates: CLIENT_CERTIFICATES_SCHEMA,
  },
  {
    required: ["cert", "key"],
    description:
      "TLS settings, with which the listener serves HTTPS. Paths are relative to this " +
      "file, and changed files are reloaded immediately",
  },
);

const ADDRESS_PROPERTIES = {
  host: nonEmptyText(
    `Address to listen on. ${DEFAULT_HOST} accepts connections from this machine only, 0.0.0.0 from any machine. Default: ${DEFAULT_HOST}`,
  ),
  port: {
    type: "integer",
    minimum: 0,
    maximum: 65_535,
    description: `Port to listen on. 0 selects any free port. Default: ${DEFAULT_PORT}`,
  },
  socket: path("Path of a Unix socket, used instead of host and port and relative to this file"),
  mode: {
    type: "string",
    pattern: "^0?[0-7]{3}$",
    "x-expects": 'file permissions such as "0660", in quotes',
    description: `File permissions of the socket. Default: ${DEFAULT_SOCKET_MODE}`,
  },
  tls: TLS_SCHEMA,
  hosts: list(
    { type: "string", minLength: 1 },
    "Additional host names that are accepted in the Host header",
    { default: [] },
  ),
  origins: list(
    {
      type: "string",
      pattern: "^https?://[^/\\s]+$",
      "x-expects": "an origin such as https://app.example",
    },
    "Origins of web pages that may call the gateway from a browser",
    { default: [] },
  ),
};

export const LISTEN_SCHEMA = {
  if: { type: "array" },
  then: { type: "array", minItems: 1, maxItems: 16, items: closedObject(ADDRESS_PROPERTIES) },
  else: closedObject(ADDRESS_PROPERTIES),
  default: {},
  description: "Listeners for clients: one address, or a list. A change requires a restart",
};

export function checkListen(raw: unknown, report: ReportProblem): void {
  const seenAddresses = new Map<string, string>();
  for (const [pointer, each] of listListenEntries(raw)) {
    if (!isMapping(each)) continue;
    const { socket, host = DEFAULT_HOST, port = DEFAULT_PORT } = each;
    for (const key of ["host", "port", "tls"])
      if (socket !== undefined && each[key] !== undefined)
        report(problem.notAllowedWithSocket(key), childPointer(pointer, key), "key");
    if (socket === undefined && each["mode"] !== undefined)
      report(problem.modeWithoutSocket(), childPointer(pointer, "mode"), "key");
    const at = socket === undefined ? `${String(host)}:${String(port)}` : String(socket);
    if (seenAddresses.has(at) && port !== 0) report(problem.sameListener(at), pointer);
    seenAddresses.set(at, pointer);
  }
}

const listListenEntries = (raw: unknown): readonly (readonly [pointer: string, entry: unknown])[] =>
  Array.isArray(raw)
    ? raw.map((each, i) => [childPointer("/listen", String(i)), each] as const)
    : [["/listen", raw]];

/**
 * Fills in the defaults that depend on the kind of listener.
 * @param overrides Values of the command line, which replace those of the first listener that is
 *   not a socket.
 */
export function expandListen(
  raw: unknown,
  overrides: { readonly host?: string; readonly port?: number },
): unknown {
  const entries = [raw].flat() as Mapping[];
  const first = entries.findIndex(({ socket }) => socket === undefined);
  const expanded = entries.map((entry, i) =>
    entry["socket"] === undefined
      ? {
          host: DEFAULT_HOST,
          port: DEFAULT_PORT,
          ...entry,
          ...(i === first && overrides.host !== undefined && { host: overrides.host }),
          ...(i === first && overrides.port !== undefined && { port: overrides.port }),
        }
      : { mode: DEFAULT_SOCKET_MODE, ...entry },
  );
  return Array.isArray(raw) ? expanded : expanded[0];
}

export const toListenConfigs = (raw: any): readonly ListenConfig[] =>
  [raw].flat().map(({ host = DEFAULT_HOST, port = DEFAULT_PORT, tls, ...more }: any) => ({
    host,
    port,
    socket: more.socket,
    mode: more.mode,
    tls: tls && {
      cert: tls.cert,
      key: tls.key,
      minVersion: tls.min_version === "1.3" ? ("TLSv1.3" as const) : ("TLSv1.2" as const),
      clientCertificates: tls.client_certificates,
    },
    hosts: more.hosts,
    origins: more.origins,
  }));
