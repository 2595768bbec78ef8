// Opens the port with listhen. By default, listhen ends the process on signals and moves to another
// port or address if the configured one is in use. This function opens exactly the given address
// and port, or fails with the reason.
import { channel } from "node:diagnostics_channel";
import { Server, type RequestListener } from "node:http";
import { isIP, type AddressInfo } from "node:net";
import { fail, getFault } from "../../model/error.ts";
import { resolveHost, probePort, toBindError } from "./port-probe.ts";

const listhen = import("listhen");

export async function listenWithListhen(
  {
    host,
    port,
    key,
  }: { readonly host: string; readonly port: number; readonly key?: string | undefined },
  handler: RequestListener,
): Promise<Server> {
  // listhen replaces some names and wildcard addresses by localhost, so it receives a resolved
  // address and `public`.
  const address = await resolveHost(host);
  for (let tries = port === 0 ? 5 : 1; ; tries--) {
    try {
      // Tested before listhen is called, because an error inside listhen cannot be caught.
      return await openListhen(address, await probePort(address, port), handler);
    } catch (error) {
      const code = (error as NodeJS.ErrnoException).code;
      if (code !== "EADDRINUSE" || tries <= 1)
        throw getFault(error) ? error : toBindError(host, port, error, key);
    }
  }
}

async function openListhen(host: string, port: number, handler: RequestListener): Promise<Server> {
  const { listen } = await listhen;
  const listening = channel("tracing:net.server.listen:asyncStart");
  let lost!: (error: unknown) => void;
  const failed = new Promise<never>((_, reject) => (lost = reject));
  // Another program can take the port between the test and this call. listhen's server does not
  // handle that error.
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
        isTest: true, // disables listhen's port search
        autoClose: false,
        public: host === "0.0.0.0" || host === "::",
        showURL: false,
      }),
    ]);
    server.off("error", lost);
    // Removes the listener with which listhen tracks requests for its own close, because it is
    // unused and costs a listener and a closure per request.
    for (const listener of server.listeners("request"))
      if (listener !== handler) server.off("request", listener as RequestListener);
    const bound = server.address() as AddressInfo;
    if (bound.port !== port || !isSameAddress(bound.address, host)) {
      server.close();
      fail("conflict", `Cannot listen on ${host}:${port}. Choose another host or port.`, {
        code: "listen_refused",
      });
    }
    return server as Server;
  } finally {
    listening.unsubscribe(watch);
  }
}

/** Whether two addresses are the same. An IPv6 address can be written in several ways. */
const isSameAddress = (a: string, b: string) => {
  const [x, y] = [a, b].map((address) => (isIP(address) === 6 ? `[${address}]` : address));
  return x === y || (URL.canParse(`http://${y}`) && new URL(`http://${y}`).hostname === x);
};
