// Opens the port. listhen does it, and has to be held: it ends the process on signals unless told otherwise, and moves to
// another port or address when it thinks it knows better. Here it is this address and this port, or an error that says why not.
import { channel } from "node:diagnostics_channel";
import { lookup } from "node:dns/promises";
import { createServer as serve, Server, type RequestListener } from "node:http";
import { createServer, isIP, type AddressInfo } from "node:net";
import { fail, faultOf } from "../model/error.ts";

/** The heaviest import of all, and the last one to be used: it loads while the store opens. */
const listhen = import("listhen");

export async function bind(
  { host, port }: { readonly host: string; readonly port: number },
  handler: RequestListener,
): Promise<Server> {
  // listhen swaps a name that it does not like, and "any address", for localhost: it gets an address and a plain yes.
  const address = await addressOf(host);
  for (let tries = port === 0 ? 5 : 1; ; tries--) {
    try {
      return await open(address, await probe(address, port), handler);
    } catch (error) {
      const code = (error as NodeJS.ErrnoException).code;
      if (code !== "EADDRINUSE" || tries <= 1)
        throw faultOf(error) ? error : unbound(host, port, error);
    }
  }
}

/** An address and a port that can be had, for others to open. */
export async function choose(host: string, port: number): Promise<{ host: string; port: number }> {
  const address = await addressOf(host);
  return probe(address, port).then(
    (free) => ({ host: address, port: free }),
    (error: unknown) => {
      throw unbound(host, port, error);
    },
  );
}

/**
 * One of several processes on one port. Without listhen, and without a question before: both would open the port for a
 * moment to see whether it is free, and be handed connections that nobody answers.
 */
export const share: typeof bind = ({ host, port }, handler) =>
  new Promise((resolve, reject) => {
    const server = serve(handler);
    server.once("error", (error) => reject(unbound(host, port, error)));
    server.listen({ host, port }, () => {
      server.removeAllListeners("error");
      resolve(server);
    });
  });

const addressOf = async (host: string): Promise<string> =>
  isIP(host)
    ? host
    : lookup(host).then(
        ({ address }) => address,
        (error: unknown) => {
          throw unbound(host, 0, error);
        },
      );

/** Asked before listhen is: what goes wrong in there cannot be caught. The port that can be had. */
const probe = (host: string, port: number): Promise<number> =>
  new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", reject);
    server.listen({ host, port }, () => {
      const { port } = server.address() as AddressInfo;
      server.close(() => resolve(port));
    });
  });

async function open(host: string, port: number, handler: RequestListener): Promise<Server> {
  const { listen } = await listhen;
  const listening = channel("tracing:net.server.listen:asyncStart");
  let lost!: (error: unknown) => void;
  const failed = new Promise<never>((_, reject) => (lost = reject));
  // Somebody may take the port between the question and now; listhen's server has nobody to tell.
  const watch = (message: unknown) => {
    const { server } = message as { server: unknown };
    if (server instanceof Server) server.once("error", lost);
  };
  listening.subscribe(watch);
  try {
    const { server } = await Promise.race([
      failed,
      listen(handler, {
        hostname: host,
        port,
        isProd: true,
        isTest: true, // silences its port search
        autoClose: false,
        public: host === "0.0.0.0" || host === "::",
        showURL: false,
      }),
    ]);
    server.off("error", lost);
    const bound = server.address() as AddressInfo;
    if (bound.port !== port || !sameAddress(bound.address, host)) {
      server.close();
      fail("conflict", `${host}:${port} cannot be used here. Choose another host or port.`, {
        code: "listen_refused",
      });
    }
    return server as Server;
  } finally {
    listening.unsubscribe(watch);
  }
}

/** There are several ways to write one IPv6 address. */
const sameAddress = (a: string, b: string) => {
  const [x, y] = [a, b].map((address) => (isIP(address) === 6 ? `[${address}]` : address));
  return x === y || (URL.canParse(`http://${y}`) && new URL(`http://${y}`).hostname === x);
};

function unbound(host: string, port: number, error: unknown): Error {
  const { code, message } = error as NodeJS.ErrnoException;
  const why: Readonly<Record<string, string>> = {
    EADDRINUSE: `Port ${port} on ${host} is taken. Stop what listens there, or choose another with --port.`,
    EACCES: `Port ${port} needs privileges that this process does not have. Choose one above 1023.`,
    EADDRNOTAVAIL: `This machine has no address ${host}. Use 127.0.0.1, or an address of one of its interfaces.`,
    ENOTFOUND: `The host name ${host} has no address. Use 127.0.0.1, or an address of this machine.`,
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
