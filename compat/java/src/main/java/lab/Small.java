package lab;

/** The smallest bean of the test vectors. */
public class Small {
    public int a;
    public String b;
}
