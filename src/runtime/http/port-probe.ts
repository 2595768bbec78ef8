// Resolves addresses, tests ports, and explains why a port cannot be opened.
import { lookup } from "node:dns/promises";
import { createServer, isIP, type AddressInfo } from "node:net";
import { fail } from "../../model/error.ts";

/** Returns a free address and port for other processes to open. */
export async function chooseAddress(
  host: string,
  port: number,
): Promise<{ host: string; port: number }> {
  const address = await resolveHost(host);
  return probePort(address, port).then(
    (free) => ({ host: address, port: free }),
    (error: unknown) => {
      throw toBindError(host, port, error);
    },
  );
}

export const resolveHost = async (host: string): Promise<string> =>
  isIP(host)
    ? host
    : lookup(host).then(
        ({ address }) => address,
        (error: unknown) => {
          throw toBindError(host, 0, error);
        },
      );

/** Resolves with the port if it is free. For `0`, resolves with a free port. */
export const probePort = (host: string, port: number): Promise<number> =>
  new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", reject);
    server.listen({ host, port }, () => {
      const { port } = server.address() as AddressInfo;
      server.close(() => resolve(port));
    });
  });

/**
 * Returns the error that explains why a port cannot be opened.
 * @param key Option that sets the port.
 */
export function toBindError(host: string, port: number, error: unknown, key = "--port"): Error {
  const { code, message } = error as NodeJS.ErrnoException;
  const why: Readonly<Record<string, string>> = {
    EADDRINUSE: `Port ${port} on ${host} is already in use. Stop the process that uses the port, or choose another port with ${key}.`,
    EACCES: `Port ${port} requires privileges that this process does not have. Choose a port above 1023.`,
    EADDRNOTAVAIL: `This machine has no address ${host}. Use 127.0.0.1 or an address of one of its interfaces.`,
    ENOTFOUND: `The host name ${host} cannot be resolved. Use 127.0.0.1 or an address of this machine.`,
  };
  try {
    return fail("conflict", why[code ?? ""] ?? `Cannot listen on ${host}:${port}: ${message}`, {
      code: code === "EADDRINUSE" ? "port_taken" : "listen_failed",
      cause: error,
    });
  } catch (fault) {
    return fault as Error;
  }
}
