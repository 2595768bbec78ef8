import { once } from "node:events";
import { createServer, type AddressInfo } from "node:net";

/**
 * Returns a port for a program that cannot choose one itself. Another process may take it first.
 */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return port;
}

/**
 * A port that rejects connections. No process that requests any free port gets it, and IANA has not
 * assigned it.
 */
export const CLOSED_PORT = 4;
