// Serves the control socket, through which commands reach a running gateway: HTTP over a Unix
// socket in the state directory, which only its owner can access.
//   curl --unix-socket .tollgate/control.sock http://localhost/status -d '{}'
import type { IncomingMessage } from "node:http";
import { fail, getFault, publicErrorText } from "../../model/error.ts";
import type { JsonObject } from "../../model/values.ts";
import { jsonReplacer } from "./control-client.ts";
import { assertNotRunning } from "./single-instance.ts";
import type { CommandPrincipal } from "../../runtime/access/principal.ts";
import { openPort } from "../../runtime/http/open-port.ts";
import { createControlSocketPath } from "./control-socket-path.ts";

/**
 * Handles a command. The result must be serializable as JSON, and amounts become decimal strings.
 * `giver`: the principal, if known. `id`: ID of the new record, if the specification has
 * `createId`.
 */
export type CommandHandler = (
  input: JsonObject,
  giver?: CommandPrincipal,
  id?: string,
) => Promise<unknown>;
export type CommandHandlerMap = Readonly<Record<string, CommandHandler>>;

/** Executes commands, regardless of how they arrived. */
export interface ControlDispatcher {
  /**
   * @param presented Authorization header of a caller that requests fewer rights than the owner of
   *   the state directory.
   */
  dispatch(name: string, input: JsonObject, presented: string | undefined): Promise<unknown>;
}

export interface ControlSocket extends AsyncDisposable {
  /** Path of the socket. */
  readonly path: string;
}

const MAX_BODY_BYTES = 1 << 20;

/** Opens the socket. `path`: the state directory. */
export async function serveControl(of: {
  readonly path: string;
  readonly gate: ControlDispatcher;
}): Promise<ControlSocket> {
  const place = await createControlSocketPath(of.path);
  await assertNotRunning(of.path);
  const address = {
    host: "localhost",
    port: 0,
    socket: { path: place.socket, mode: "0600", key: "state_dir" },
  };
  const server = await openPort(address, (req, res) => {
    void respond(req, of).then(({ status, text }) => {
      res.writeHead(status, { "content-type": "application/json", connection: "close" });
      res.end(`${text}\n`);
    });
  });
  return {
    path: place.socket,
    async [Symbol.asyncDispose]() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      server.closeAllConnections();
      await closed;
      await place.remove();
    },
  };
}

async function respond(
  req: IncomingMessage,
  { gate }: Pick<Parameters<typeof serveControl>[0], "gate">,
): Promise<{ status: number; text: string }> {
  try {
    const name = withReadErrors(() => decodeURIComponent((req.url ?? "/").slice(1)));
    const text = await readBody(req);
    const input: unknown = withReadErrors(() => JSON.parse(text || "{}"));
    if (typeof input !== "object" || input === null || Array.isArray(input)) return failMalformed();
    const { authorization } = req.headers;
    const value = (await gate.dispatch(name, input as JsonObject, authorization)) ?? null;
    return { status: 200, text: JSON.stringify({ value }, jsonReplacer) };
  } catch (error) {
    const { kind, message, code, param, details } = getFault(error) ?? {
      kind: "internal",
      message: publicErrorText(error),
    };
    return {
      status: 400,
      text: JSON.stringify({ error: { kind, message, code, param, details } }),
    };
  }
}

const failMalformed = (): never =>
  fail("invalid", "The path must contain a command name, and the input must be a JSON object.");

/** Reads the input. Parse errors are replaced by the gateway's own message. */
function withReadErrors<T>(reading: () => T): T {
  try {
    return reading();
  } catch {
    return failMalformed();
  }
}

async function readBody(req: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of req) {
    bytes += (chunk as Buffer).length;
    if (bytes > MAX_BODY_BYTES) fail("too_large", "The input must be at most 1 MiB.");
    chunks.push(chunk as Buffer);
  }
  return Buffer.concat(chunks).toString();
}
