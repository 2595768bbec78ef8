import { once } from "node:events";
import { createServer, type AddressInfo } from "node:net";

/** For a program that cannot choose one itself. Another process may take it before it does. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return port;
}

/** Where a connection is refused. No process is given it that asks for any port, and IANA has assigned it to none. */
export const CLOSED_PORT = 4;
