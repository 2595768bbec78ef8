// Paths of the admin API.
export const API_PATH = "/admin/v1";
/** Signing in with the operators' identity provider. */
export const OIDC_PATH = `${API_PATH}/oidc`;
export const OPENAPI_PATH = "/admin/openapi.json";

/** Whether a path is the API's: no plugin serves there. */
export const isApiPath = (path: string): boolean =>
  path === API_PATH || path.startsWith(`${API_PATH}/`) || path === OPENAPI_PATH;
