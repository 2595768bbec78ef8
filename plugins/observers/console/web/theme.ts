// Dark or light theme, from the system or from the reader's choice, which the browser stores.
const STORAGE_KEY = "tollgate-theme";

export const THEMES = ["system", "light", "dark"] as const;
export type Theme = (typeof THEMES)[number];

function storedTheme(): Theme {
  try {
    const said = localStorage.getItem(STORAGE_KEY);
    return said === "light" || said === "dark" ? said : "system";
  } catch {
    return "system";
  }
}

export const theme = {
  get: storedTheme,
  set(to: Theme): void {
    try {
      if (to === "system") localStorage.removeItem(STORAGE_KEY);
      else localStorage.setItem(STORAGE_KEY, to);
    } catch {
      // If the browser stores nothing, the choice applies until the page is closed.
    }
    theme.apply(to);
  },
  apply(to: Theme = storedTheme()): void {
    if (to === "system") delete document.documentElement.dataset["theme"];
    else document.documentElement.dataset["theme"] = to;
    dispatchEvent(new Event("tollgate-theme"));
  },
};
