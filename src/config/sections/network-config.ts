// Where connections come in and go out, as gateway.yaml says it: types alone.

export interface ListenConfig {
  readonly host: string;
  readonly port: number;
  /** Absolute; in place of host and port. */
  readonly socket: string | undefined;
  /** Of the socket, in octal digits. */
  readonly mode: string | undefined;
  readonly tls: ListenTls | undefined;
  /** More Host names that count as ours. */
  readonly hosts: readonly string[];
  /** Origins that browsers may call from. */
  readonly origins: readonly string[];
}

/** Files, absolute. */
export interface ListenTls {
  readonly cert: string;
  readonly key: string;
  readonly minVersion: "TLSv1.2" | "TLSv1.3";
  /** Clients are asked for certificates that these have signed. */
  readonly clientCertificates: { readonly ca: string; readonly required: boolean } | undefined;
}

/** An HTTP proxy that tunnels (CONNECT). */
export interface ProxySettings {
  readonly url: string;
  /** Hosts that are reached straight, with one star each. */
  readonly bypassHosts: readonly string[];
}
