package headrace;

/** Checked exceptions out of methods of Scala, which declare none. */
final class Thrown {
    private Thrown() {}

    static RuntimeException as(Throwable error) {
        return Thrown.<RuntimeException>raise(error);
    }

    @SuppressWarnings("unchecked")
    private static <E extends Throwable> E raise(Throwable error) throws E {
        throw (E) error;
    }
}
