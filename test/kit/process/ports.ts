import { once } from "node:events";
import { createServer } from "node:net";

/** Ports that Linux and macOS never assign to a program that requests any free port. */
const FIRST_PORT = 20_000;
const PORTS = 12_000;

/**
 * Returns a port for a program that cannot choose one itself. No program that requests any free
 * port can take it first.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = FIRST_PORT + Math.floor(Math.random() * PORTS);
    const server = createServer();
    const isFree = await new Promise<boolean>((resolve) => {
      server.once("error", () => resolve(false));
      server.listen(port, "127.0.0.1", () => resolve(true));
    });
    if (!isFree) continue;
    server.close();
    await once(server, "close");
    return port;
  }
}

/**
 * A port that rejects connections. No process that requests any free port gets it, and IANA has not
 * assigned it.
 */
export const CLOSED_PORT = 4;
