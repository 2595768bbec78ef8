// Base path of the admin API.
export const API_PATH = "/admin/v1";
/** Base path of the login with the operators' identity provider. */
export const OIDC_PATH = `${API_PATH}/oidc`;
export const OPENAPI_PATH = "/admin/openapi.json";

/** Whether a path belongs to the admin API. Plugins cannot serve such a path. */
export const isApiPath = (path: string): boolean =>
  path === API_PATH || path.startsWith(`${API_PATH}/`) || path === OPENAPI_PATH;
