// Types of the config for incoming and outgoing connections.

export interface ListenConfig {
  readonly host: string;
  readonly port: number;
  /** Absolute path, in place of host and port. */
  readonly socket: string | undefined;
  /** Mode of the socket file, in octal digits. */
  readonly mode: string | undefined;
  readonly tls: ListenTls | undefined;
  /** Additional host names that are accepted in the Host header. */
  readonly hosts: readonly string[];
  /** Origins of web pages that may send requests (CORS). */
  readonly origins: readonly string[];
}

/** Absolute paths of PEM files. */
export interface ListenTls {
  readonly cert: string;
  readonly key: string;
  readonly minVersion: "TLSv1.2" | "TLSv1.3";
  /** CA file for client certificates. The gateway requests a certificate that this CA signed. */
  readonly clientCertificates: { readonly ca: string; readonly required: boolean } | undefined;
}

/** An HTTP proxy that supports CONNECT. */
export interface ProxySettings {
  readonly url: string;
  /** Hosts to which the gateway connects directly. Each may contain one `*`. */
  readonly bypassHosts: readonly string[];
}
