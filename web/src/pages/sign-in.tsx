import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { messageOf } from "../api.ts";
import { signIn, signInReason } from "../session.ts";

export function SignIn(): JSX.Element {
  const [token, setToken] = useState("");
  const [error, setError] = useState<string | null>(null);
  useEffect(() => {
    document.title = "Sign in · Pawl";
  }, []);
  const submit = async (event: Event) => {
    event.preventDefault();
    setError(await signIn(token.trim()).catch(messageOf));
  };
  return (
    <main class="sign-in">
      <h1>Sign in to Pawl</h1>
      {signInReason.value !== null && (
        <p class="stale" role="alert">
          {signInReason.value}
        </p>
      )}
      <p>
        Open the address that <code>pawl dev</code> or <code>pawl serve</code> has printed: its token works once. Or
        give a token that was made for you.
      </p>
      <form onSubmit={(event) => void submit(event)}>
        <label>
          Token
          <input
            type="password"
            autocomplete="off"
            value={token}
            onInput={(event) => setToken(event.currentTarget.value)}
            required
          />
        </label>
        {error !== null && (
          <p class="form-error" role="alert">
            {error}
          </p>
        )}
        <button type="submit" class="primary">
          Sign in
        </button>
      </form>
    </main>
  );
}
