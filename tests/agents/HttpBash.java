import java.io.IOException;
import java.io.StringReader;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;

/**
 * A plain program on Java's HttpClient with a tool `bash`: java HttpBash.java MODEL PROMPT.
 *
 * <p>It works until the model calls no tool, and prints its last words. HttpClient reads no proxy
 * variable, so the address is that of OPENAI_BASE_URL. A request that is refused with 429 is sent
 * again, three times at most.
 */
public class HttpBash {
    static final HttpClient CLIENT = HttpClient.newHttpClient();
    static final URI ENDPOINT =
            URI.create(System.getenv("OPENAI_BASE_URL") + "/chat/completions");

    static final Object TOOLS =
            Json.read(
                    """
                    [{"type": "function", "function": {
                        "name": "bash",
                        "description": "Run a command in a shell.",
                        "parameters": {
                            "type": "object",
                            "properties": {"command": {"type": "string"}},
                            "required": ["command"]
                        }
                    }}]
                    """);

    public static void main(String[] given) throws Exception {
        List<Object> messages = new ArrayList<>();
        messages.add(Map.of("role", "user", "content", given[1]));
        while (true) {
            Map<String, Object> said = ask(given[0], messages);
            List<Object> calls = list(said.get("tool_calls"));
            if (calls == null || calls.isEmpty()) {
                System.out.println(said.get("content"));
                return;
            }
            messages.add(said);
            messages.addAll(calls.parallelStream().map(HttpBash::run).collect(Collectors.toList()));
        }
    }

    static Map<String, Object> ask(String model, List<Object> messages) throws Exception {
        Map<String, Object> body = new LinkedHashMap<>();
        body.put("model", model);
        body.put("messages", messages);
        body.put("tools", TOOLS);
        HttpRequest request =
                HttpRequest.newBuilder(ENDPOINT)
                        .header("Authorization", "Bearer " + System.getenv("OPENAI_API_KEY"))
                        .header("Content-Type", "application/json")
                        .POST(HttpRequest.BodyPublishers.ofString(Json.write(body)))
                        .build();
        HttpResponse<String> answer = CLIENT.send(request, HttpResponse.BodyHandlers.ofString());
        for (int again = 0; answer.statusCode() == 429 && again < 3; again++) {
            Thread.sleep(100);
            answer = CLIENT.send(request, HttpResponse.BodyHandlers.ofString());
        }
        if (answer.statusCode() != 200) {
            throw new IOException("the model answered " + answer.statusCode());
        }
        return map(map(list(map(Json.read(answer.body())).get("choices")).get(0)).get("message"));
    }

    static Object run(Object call) {
        Map<String, Object> function = map(map(call).get("function"));
        String command = (String) map(Json.read((String) function.get("arguments"))).get("command");
        Map<String, Object> result = new LinkedHashMap<>();
        result.put("role", "tool");
        result.put("tool_call_id", map(call).get("id"));
        result.put("content", Json.write(bash(command)));
        return result;
    }

    static Map<String, Object> bash(String command) {
        try {
            Process shell = new ProcessBuilder("sh", "-c", command).redirectErrorStream(true).start();
            String output = new String(shell.getInputStream().readAllBytes());
            Map<String, Object> ran = new LinkedHashMap<>();
            ran.put("returncode", shell.waitFor());
            ran.put("output", output);
            return ran;
        } catch (IOException | InterruptedException failed) {
            throw new IllegalStateException(failed);
        }
    }

    @SuppressWarnings("unchecked")
    static Map<String, Object> map(Object value) {
        return (Map<String, Object>) value;
    }

    @SuppressWarnings("unchecked")
    static List<Object> list(Object value) {
        return (List<Object>) value;
    }

    /** JSON as maps, lists, strings, numbers as they were written, booleans and null. */
    static class Json {
        record Number(String digits) {}

        final StringReader text;
        int next;

        Json(String text) {
            this.text = new StringReader(text);
            step();
        }

        static Object read(String text) {
            return new Json(text).value();
        }

        void step() {
            try {
                next = text.read();
            } catch (IOException failed) {
                throw new IllegalStateException(failed);
            }
        }

        /** Skips spaces, and this character if it comes then. */
        boolean skip(char wanted) {
            while (Character.isWhitespace(next)) step();
            if (next != wanted) return false;
            step();
            return true;
        }

        Object value() {
            if (skip('{')) return object();
            if (skip('[')) return array();
            if (skip('"')) return string();
            StringBuilder word = new StringBuilder();
            for (; Character.isLetterOrDigit(next) || "+-.".indexOf(next) >= 0; step()) {
                word.append((char) next);
            }
            return switch (word.toString()) {
                case "null" -> null;
                case "true" -> true;
                case "false" -> false;
                default -> new Number(word.toString());
            };
        }

        Map<String, Object> object() {
            Map<String, Object> object = new LinkedHashMap<>();
            while (!skip('}')) {
                skip('"');
                String name = string();
                skip(':');
                object.put(name, value());
                skip(',');
            }
            return object;
        }

        List<Object> array() {
            List<Object> array = new ArrayList<>();
            while (!skip(']')) {
                array.add(value());
                skip(',');
            }
            return array;
        }

        String string() {
            StringBuilder string = new StringBuilder();
            for (; next != '"'; step()) {
                string.append(next == '\\' ? escaped() : (char) next);
            }
            step();
            return string.toString();
        }

        char escaped() {
            step();
            if (next == 'u') {
                StringBuilder code = new StringBuilder();
                for (int digit = 0; digit < 4; digit++) {
                    step();
                    code.append((char) next);
                }
                return (char) Integer.parseInt(code.toString(), 16);
            }
            int short_ = "nrtbf".indexOf(next);
            return short_ < 0 ? (char) next : "\n\r\t\b\f".charAt(short_);
        }

        static String write(Object value) {
            if (value instanceof Map) {
                return map(value).entrySet().stream()
                        .map(each -> write(each.getKey()) + ":" + write(each.getValue()))
                        .collect(Collectors.joining(",", "{", "}"));
            }
            if (value instanceof List) {
                return list(value).stream()
                        .map(Json::write)
                        .collect(Collectors.joining(",", "[", "]"));
            }
            if (value instanceof Number number) return number.digits();
            return value instanceof String string ? quote(string) : String.valueOf(value);
        }

        static String quote(String string) {
            StringBuilder quoted = new StringBuilder("\"");
            for (char each : string.toCharArray()) {
                if (each == '"' || each == '\\') quoted.append('\\').append(each);
                else if (each < ' ') quoted.append(String.format("\\u%04x", (int) each));
                else quoted.append(each);
            }
            return quoted.append('"').toString();
        }
    }
}
