// Finds the address at which plugins of this gateway reach the public port.
import type { ListenConfig } from "../../config/sections/network-config.ts";
import { fail } from "../../model/error.ts";

/** One of the public addresses. */
export interface LocalEndpoint {
  /** "https://127.0.0.1:8787" */
  readonly origin: string;
  /** Path of the Unix socket that replaces host and port. */
  readonly socket: string | undefined;
  /** Certificate file. Undefined without TLS. */
  readonly certificateFile: string | undefined;
}

/**
 * Returns the first listener that a client without a certificate can use.
 * @param urls URLs of the listeners, in their order.
 */
export function findLocalEndpoint(
  urls: readonly string[],
  listen: readonly Pick<ListenConfig, "socket" | "tls">[],
): LocalEndpoint {
  if (urls.length === 0) fail("unavailable", "The gateway does not serve requests yet.");
  const at = urls.findIndex((_, i) => !listen[i]?.tls?.clientCertificates?.required);
  if (at < 0)
    fail(
      "unsupported",
      "Every listener requires a client certificate, and the gateway does not have " +
        "one. Add a listener that does not require one, for example a Unix socket, under `listen`.",
      { code: "own_port_closed" },
    );
  const [url, { socket, tls } = { socket: undefined, tls: undefined }] = [urls[at]!, listen[at]];
  const unix = url.startsWith("unix:");
  return {
    origin: unix ? "http://localhost" : new URL(url).origin,
    socket: unix ? (socket ?? url.slice("unix:".length)) : undefined,
    certificateFile: tls?.cert,
  };
}
