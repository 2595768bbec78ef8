/** As users write a base address: with the version, without, or with it twice. A trailing slash is no other path. */
export const at = (path: string) => [`/v1${path}`, path, `/v1/v1${path}`] as const;
